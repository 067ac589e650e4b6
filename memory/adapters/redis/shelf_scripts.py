"""The steps of a shelf on the server. Each uses keys of one hash tag only; see `shelves`."""

from __future__ import annotations

# Of the index: KEYS are members by place, and by time. ARGV: member, weight, time, the weight of all, the time before
# which values have expired, and how many may go now. Gives the place, and what has to go: members with their places.
ENTER = """
local top = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0
local place = top + ARGV[2]
redis.call('ZADD', KEYS[1], place, ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
local last = place - ARGV[4]
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'WITHSCORES', 'LIMIT', 0, ARGV[6])
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[5], 'LIMIT', 0, ARGV[6])
for _, member in ipairs(expired) do
  gone[#gone + 1] = member
  gone[#gone + 1] = redis.call('ZSCORE', KEYS[1], member) or '0'
end
return {string.format('%.0f', place), gone}
"""
# Of the index: ARGV are the time before which values have expired, and how many may go now. Gives members and places.
EXPIRED = """
local gone = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])) do
  gone[#gone + 1] = member
  gone[#gone + 1] = redis.call('ZSCORE', KEYS[1], member) or '0'
end
return gone
"""
# Of the index: members leave it that are at those places.
LEAVE = """
for at = 1, #ARGV, 2 do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[at]) or -1) == tonumber(ARGV[at + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[at])
    redis.call('ZREM', KEYS[2], ARGV[at])
  end
end
return 1
"""
# Of a user: KEYS are values, names by place, bytes of all values, marks, and the user's erasure. ARGV: name, value,
# place, time, how many values, their bytes, whether the first value stays, and marks that forbid it if they are not
# older. Gives whether it is there now, and what had to go: names with their places.
PUT = """
local erased = redis.call('GET', KEYS[5])
local is_refused = erased and cmsgpack.unpack(erased)['erased_at'] >= tonumber(ARGV[4])
for at = 8, #ARGV do
  local mark = redis.call('ZSCORE', KEYS[4], ARGV[at])
  is_refused = is_refused or mark and tonumber(mark) >= tonumber(ARGV[4])
end
local before = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if before == 0 and is_refused then return {0, {}} end
redis.call('ZADD', KEYS[2], 'GT', ARGV[3], ARGV[1])
if is_refused or before > 0 and ARGV[7] == '1' then return {1, {}} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local bytes = redis.call('INCRBY', KEYS[3], #ARGV[2] - before)
local gone = {}
while true do
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local size = redis.call('HSTRLEN', KEYS[1], first[1])
  if redis.call('ZCARD', KEYS[2]) <= tonumber(ARGV[5]) and bytes - size < tonumber(ARGV[6]) then break end
  redis.call('ZREM', KEYS[2], first[1])
  redis.call('HDEL', KEYS[1], first[1])
  bytes = redis.call('DECRBY', KEYS[3], size)
  gone[#gone + 1] = first[1]
  gone[#gone + 1] = first[2]
end
return {1, gone}
"""
# Of a user: values go that are at those places, or at earlier ones.
TAKE_OFF = """
for at = 1, #ARGV, 2 do
  local place = redis.call('ZSCORE', KEYS[2], ARGV[at])
  if place and tonumber(place) <= tonumber(ARGV[at + 1]) then
    redis.call('DECRBY', KEYS[3], redis.call('HSTRLEN', KEYS[1], ARGV[at]))
    redis.call('HDEL', KEYS[1], ARGV[at])
    redis.call('ZREM', KEYS[2], ARGV[at])
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('DEL', KEYS[3]) end
return 1
"""
# Of a user: another value under that name, unless it was changed meanwhile.
REPLACE = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('INCRBY', KEYS[3], #ARGV[3] - #ARGV[2])
return 1
"""
# Of a user: ARGV are the time, the time of marks that have no effect any more, how many seconds later the server may
# drop all, and the marks.
MARK = """
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', '(' .. ARGV[2])
for at = 4, #ARGV do redis.call('ZADD', KEYS[4], 'GT', ARGV[1], ARGV[at]) end
redis.call('EXPIRE', KEYS[4], ARGV[3])
return 1
"""
# Of a user: gives all names with their places.
ERASE = """
local gone = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return gone
"""
# Of the index or of a user: members below a place, the newest first, with their places.
NEWEST = """
return redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
"""
