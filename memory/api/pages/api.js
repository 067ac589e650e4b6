// Calls of the REST API. The page's own place says where that is, whatever a proxy put before our paths.

const BASE = new URL("..", import.meta.url); // …/v1/memory/
const WHO = "memory.caller"; // in this tab only, and gone with it

/** An answer that is no success. `status` 0: there was no answer. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Who calls: `{user}` in development, `{token}` elsewhere; `{operator}` is a service token. */
export function identity() {
  try {
    return JSON.parse(sessionStorage.getItem(WHO)) ?? {};
  } catch {
    return {};
  }
}

export function setIdentity(who) {
  sessionStorage.setItem(WHO, JSON.stringify({ ...identity(), ...who }));
}

/** The mode in which the API identifies callers. */
export async function identityMode() {
  return (await (await fetch(new URL("identity.json", import.meta.url))).json()).mode;
}

function headers(path, body) {
  const who = identity();
  const token = path.startsWith("operator/") ? who.operator : who.token;
  return {
    "x-memory-page": "1", // which no page of another origin can send
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(who.user && !path.startsWith("operator/") ? { "x-authz-user-id": encodedHeader(who.user) } : {}),
    ...(token ? { authorization: `Bearer ${token}` } : {}),
  };
}

/** UTF-8 as the characters that a header may hold, one for each byte. */
const encodedHeader = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/** Resolves to the response; rejects with `ApiError`. `parameters`: without those that are empty. `ifMatch`: an ETag. */
export async function answerOf(method, path, { parameters = {}, body, ifMatch } = {}) {
  const url = new URL(path ? path : BASE.pathname.replace(/\/$/, ""), BASE);
  for (const [name, value] of Object.entries(parameters)) if (value) url.searchParams.set(name, value);
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers: { ...headers(path, body), ...(ifMatch ? { "if-match": ifMatch } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    throw new ApiError(0, "unreachable", String(error));
  }
  if (answer.ok) return answer;
  const refused = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, refused.error?.code ?? "internal", refused.error?.message ?? "");
}

export const call = async (method, path, options) => (await answerOf(method, path, options)).json();

export const memoryPath = (id, rest = "") => `${encodeURIComponent(id)}${rest}`;

export const projectPath = (id, rest = "") => `projects/${encodeURIComponent(id)}${rest}`;
