"""Chats of two hundred turns with twelve facts, three decisions and two open questions among errands and rewritings.

The first two were there while compaction was worked on; the third was written when the first design was done. What
surrounds the planted turns holds names and numbers as well, but none that is the user's.
"""

from __future__ import annotations

from long_chats import LongChat, Planted, Topic

OFFICE = Topic(
    (
        "Write a polite reminder to a customer who has not paid an invoice of 480 euros.",
        "Make it shorter and friendlier.",
        "Rewrite this so that it sounds less stiff: We hereby inform you that the delivery of 12 June is postponed.",
        "What is the difference between net and gross?",
        "Draft an agenda for a meeting of forty minutes with four items.",
        "Translate into French: The lift is out of order, please use the stairs on the left.",
        "Fix the grammar: Each of the reports have been sended to Mr Okafor on Monday.",
    ),
    (
        "Dear customer, our records show that the invoice has not been settled yet.",
        "Short sentences and a clear date at the end do most of the work.",
        "Net is what remains after tax, gross is the amount before it.",
        "Open with the purpose, leave five minutes for questions and close with who does what.",
        "L'ascenseur est en panne, veuillez prendre l'escalier de gauche.",
        "Each of the reports was sent to Mr Okafor on Monday.",
        "The Eisenhower matrix was made popular by Stephen Covey in 1989.",
        "A subject line with a date is opened more often than one without.",
    ),
)
KITCHEN = Topic(
    (
        "Give me a recipe for lentil soup for six people.",
        "How long do I have to soak dried chickpeas?",
        "Write a shopping list for three simple dinners.",
        "Convert 350 degrees Fahrenheit for me.",
        "Is cast iron better than steel?",
        "Turn that into a table with two columns.",
    ),
    (
        "Soften an onion in oil, add 300 grams of lentils and a litre and a half of stock.",
        "Chickpeas want eight to twelve hours in cold water, and a pinch of soda helps.",
        "350 degrees Fahrenheit are about 177 degrees Celsius.",
        "Cast iron keeps heat longer, steel reacts faster to the flame.",
        "Salt early and acid late is a rule that rarely fails.",
        "Julia Child published Mastering the Art of French Cooking in 1961.",
        "Let it rest for ten minutes before you cut it.",
    ),
)
STORIES = Topic(
    (
        "Tell me a short story about a fox who opens a bakery.",
        "Continue the story, the fox meets a badger called Bruno with 99 cakes.",
        "Who was the first person to sail around the world?",
        "Explain tides to a child.",
        "Give me three riddles, please.",
        "Write a limerick about a postman from Kent.",
    ),
    (
        "The fox unlocked the door before sunrise and put the first tray into the oven.",
        "Bruno counted his 99 cakes twice and sighed.",
        "Juan Sebastián Elcano brought the Victoria home in 1522, after Magellan had died.",
        "The moon pulls at the sea, and the sea bulges towards it.",
        "What has keys but opens no door? A piano.",
        "There once was a postman from Kent, whose letters were terribly bent.",
        "Everybody in the village agreed that the rolls were better than before.",
    ),
)


def _said(turn: int, said: str, *needles: str) -> Planted:
    return Planted(turn, said, f"What did I tell you about this: {said.split()[-1]}?", needles)


ERRANDS = LongChat(
    "errands",
    (OFFICE, KITCHEN, STORIES),
    (
        _said(4, "I run a small bike shop in Utrecht with my brother Joris.", "Utrecht", "Joris"),
        _said(9, "My daughter Lotte is seven and can't eat gluten.", "Lotte", "gluten"),
        _said(17, "Our lease ends on 31 October.", "31 October"),
        _said(25, "Let's go with the blue tiles for the workshop floor.", "blue tiles"),
        _said(33, "The accountant is called Mrs. van der Velde, she comes every second Thursday.", "Velde"),
        _said(41, "We still have to find out whether the insurance covers rental bikes.", "insurance covers"),
        _said(
            52,
            "I take 20 mg of citalopram in the morning. Write me a packing list for a weekend.",
            "20 mg",
            "citalopram",
        ),
        _said(64, "The new lift costs 2,350 euros including installation.", "2,350"),
        _said(71, "We decided on Shopify for the web shop.", "Shopify"),
        _said(83, "I was born in Gdańsk and speak Polish with my mother.", "Gdańsk", "Polish"),
        _said(95, "Our supplier for tyres is Bandenhal, the customer number is 88-2041.", "Bandenhal", "88-2041"),
        _said(108, "My knee operation is on 14 March.", "14 March"),
        _said(121, "I don't know yet who will look after the shop in August.", "look after the shop"),
        _said(137, "We opened the shop in 2011.", "2011"),
        _said(150, "We won't do the trade fair this year, that's settled.", "trade fair"),
        _said(166, "Joris wants to cut his hours to three days a week.", "three days"),
        _said(183, "I prefer invoices without any English words.", "English words"),
    ),
)

HAUSHALT = Topic(
    (
        "Schreib mir eine kurze Einladung zu einem Grillabend für 20 Personen.",
        "Kürze das auf drei Sätze.",
        "Formuliere das höflicher: Sie haben die Frist vom 3. Mai versäumt.",
        "Wie bekomme ich Kalk aus dem Wasserkocher?",
        "Übersetze ins Englische: Der Zug nach Hamburg fällt heute aus.",
        "Was ist der Unterschied zwischen Brutto und Netto?",
        "Mach daraus eine Tabelle.",
    ),
    (
        "Liebe Nachbarn, wir laden euch herzlich zu einem Abend am Grill ein.",
        "Ein Löffel Zitronensäure löst den Kalk in einer halben Stunde.",
        "The train to Hamburg is cancelled today.",
        "Brutto ist der Betrag vor Abzügen, Netto der danach.",
        "Eine Tabelle mit drei Spalten ist meistens übersichtlicher als eine mit sechs.",
        "Justus von Liebig entwickelte 1852 den Fleischextrakt.",
        "Kurze Sätze lesen sich leichter als lange.",
        "Lass die Masse zehn Minuten ruhen, bevor du sie verarbeitest.",
    ),
)
GESCHICHTEN = Topic(
    (
        "Erzähl mir eine Geschichte von einem Bären, der Geige lernt.",
        "Wer hat die Dampfmaschine erfunden?",
        "Erkläre einem Kind, warum der Himmel blau ist.",
        "Nenne mir fünf Wörter, die sich auf Sonne reimen.",
        "Schreib die Geschichte weiter, der Bär heißt Otto und hat 12 Bienen.",
        "Korrigiere bitte die Kommas: Er sagte dass er am 5. April nach Rom fahre.",
    ),
    (
        "Der Bär setzte den Bogen an und erschrak über den ersten Ton.",
        "James Watt verbesserte 1769 die Dampfmaschine von Thomas Newcomen.",
        "Das Licht der Sonne wird an der Luft gestreut, blaues am meisten.",
        "Wonne, Tonne, Nonne, Kolonne und Madonne.",
        "Otto zählte seine 12 Bienen und stimmte die Geige.",
        "Er sagte, dass er am 5. April nach Rom fahre.",
        "Am Ende des Sommers kam der ganze Wald, um ihm zuzuhören.",
    ),
)

GERMAN = LongChat(
    "umbau",
    (HAUSHALT, GESCHICHTEN),
    (
        _said(3, "Ich wohne mit meiner Frau Svenja in Lübeck.", "Svenja", "Lübeck"),
        _said(10, "Unser Sohn Jannis hat eine Nussallergie.", "Jannis", "Nussallergie"),
        _said(19, "Das Budget für den Umbau liegt bei 38.000 Euro.", "38.000"),
        _said(27, "Wir nehmen die Wärmepumpe von Vaillant, das steht fest.", "Vaillant"),
        _said(36, "Der Elektriker heißt Herr Okonkwo und kommt am 9. September.", "Okonkwo", "9. September"),
        _said(44, "Wir müssen noch klären, ob die Decke im Bad tragend ist.", "tragend"),
        _said(57, "Ich arbeite als Logopädin in einer Praxis in Bad Schwartau.", "Logopädin", "Schwartau"),
        _said(66, "Die alte Küche verkaufen wir für 900 Euro an meine Tante Gesa.", "900", "Gesa"),
        _said(78, "Wir haben uns gegen den Balkon entschieden.", "Balkon"),
        _said(90, "Mein Vater wird im November achtzig.", "achtzig"),
        _said(103, "Die Baugenehmigung hat das Aktenzeichen BG-4471-24.", "BG-4471-24"),
        _said(115, "Ich vertrage keine Laktose.", "Laktose"),
        _said(128, "Offen ist noch, wer den Garten macht.", "wer den Garten"),
        _said(141, "Wir haben den Hund Pepper aus dem Tierheim in Kiel.", "Pepper"),
        _said(155, "Ich schwimme jeden Mittwochabend im Verein.", "Mittwochabend"),
        _said(170, "Also gut, wir machen das Dach erst im nächsten Jahr.", "Dach"),
        _said(188, "Das WLAN-Kabel soll in den zweiten Stock.", "zweiten Stock"),
    ),
)

HELP_DESK = Topic(
    (
        "Come up with four names for a podcast about rivers.",
        "Could you polish this sentence? The results was presented by Ms. Adeyemi on 4 July.",
        "Now do it in British English.",
        "Why do leaves turn red in autumn?",
        "Write a thank-you note to a teacher called Mr. Hollis.",
        "List the pros and cons of standing desks.",
        "Paraphrase: The museum welcomed 52,000 visitors last year.",
    ),
    (
        "Four ideas are Bends, Tributary, Low Water and The Ferry Hour.",
        "Ms. Adeyemi presented the results on 4 July.",
        "Leaves turn red when sugars are trapped and chlorophyll fades.",
        "Dear Mr. Hollis, thank you for your patience with us this year.",
        "Standing helps the back for an hour, and hurts the knees after three.",
        "Last year, 52,000 people visited the museum.",
        "The Danube passes through ten countries, more than any other river.",
        "A short note by hand is kept longer than a long mail.",
    ),
)
LESSONS = Topic(
    (
        "Quiz me on capitals in South America.",
        "Explain compound interest with an example of 1,000 dollars.",
        "Next question.",
        "How does a heat exchanger work?",
        "Write a dialogue between a baker and a customer in Italian.",
        "Add two more lines for the customer.",
        "Which planet has the shortest day?",
    ),
    (
        "What is the capital of Paraguay?",
        "At five percent, 1,000 dollars become 1,050 after a year and 1,102.50 after two.",
        "A heat exchanger lets two flows pass each other without mixing.",
        "Buongiorno, vorrei due panini e un cornetto, per favore.",
        "Jupiter turns once in less than ten hours.",
        "Practise aloud, since reading silently feels easier than it is.",
        "Ecco a lei, sono quattro euro e venti.",
    ),
)

FRESH = LongChat(
    "fresh",
    (HELP_DESK, LESSONS),
    (
        _said(5, "I teach chemistry at a secondary school in Leith.", "Leith"),
        _said(12, "My husband Ravi is from Kerala and we have twins, Asha and Dev.", "Kerala", "Asha"),
        _said(20, "The school trip has 46 pupils and leaves on 22 May.", "46", "22 May"),
        _said(28, "We picked the hostel by the lake over the one in town.", "hostel by the lake"),
        _said(39, "We have yet to hear if the coach company takes wheelchairs.", "wheelchairs"),
        _said(47, "I get migraines from fluorescent light.", "fluorescent"),
        _said(55, "Our head teacher is Dr. Morwenna Pike.", "Pike"),
        _said(63, "The deposit of 1,380 pounds was paid on Tuesday.", "1,380"),
        _said(74, "Forget the boat tour, we'll do the climbing wall instead.", "climbing wall"),
        _said(86, "Dev is afraid of dogs.", "afraid of dogs"),
        _said(98, "My car is a blue Nissan Leaf with a cracked rear light.", "Nissan Leaf"),
        _said(112, "I can't tell yet which colleague will come along on the trip.", "which colleague"),
        _said(124, "I'm learning Malayalam, two lessons a week.", "Malayalam"),
        _said(139, "The booking code of the hostel is LKH-90317.", "LKH-90317"),
        _said(153, "It's a no to phones during the trip, the parents voted for that.", "phones"),
        _said(168, "My mother-in-law Shanta visits us every December.", "Shanta"),
        _said(186, "Please keep your answers under a hundred words from now on.", "hundred words"),
    ),
)
