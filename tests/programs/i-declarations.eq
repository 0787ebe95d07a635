-- Follows docs/language.md (declarations): a harbour whose streams, events and tables are all declared, in every way there is.

TIME UNIT 1 min;
TIME ZONE "America/Halifax";
NAMESPACE sea = "urn:example:sea";

EVENT docked(ship: string, berth: int, tonnes: float) RATE 3 per hour;
EVENT unloading(ship: string, crew: string[]) LASTS AT MOST 12h RATE 0.5 per day;
EVENT fog(area: string) LASTS ANY;
EVENT tow(ship: string, paid: bool, due: time) LASTS AT MOST 2 days 6 hours ARRIVES AT BEGIN;
EVENT remark(ship: string FROM "vessel", text: any);
EVENT seen(ship: string FROM "call sign", knots: float);
EVENT gong();
EVENT whistle;
EVENT sea:swell(metres: float, samples: float[]) RATE 20 per min LASTS AT MOST 30s;

STREAM port FROM "port/*.jsonl" FORMAT json         -- one source for several events
  CARRIES docked, unloading, remark
  TIME begin, end
  WATERMARK 10 min IDLE 1 min;
STREAM tugs CARRIES tow WATERMARK 1h;
STREAM weather CARRIES fog, sea:swell;              /* the rest by default */
STREAM radar FROM "radar.csv.gz" CARRIES seen TIME ts; -- one type, so no column `event`
STREAM horn IDLE 2h WATERMARK 5s TIME heard CARRIES gong, whistle FORMAT csv FROM "horn.csv";

TABLE pilot(name: string, since: int) FROM "pilots.parquet" FORMAT parquet;
TABLE berth-depth(berth: int FROM "no", metres: float);
RESERVE docked 2 days;

unloaded(s, t) <- d: docked(s, b, t), u: unloading(s, _), d before u, {d, u} within 1d, berth-depth(b, m), m > 8;
in-fog(s) <- u: unloading(s, c), f: fog(a), u during f;
owing(s) <- t: tow(s, false, due), end(t) > due;
told(s, x) <- r: remark(s, x), d: docked(ship: s), r before d, {r, d} within 90;
noon() <- g: gong(), t: timer:datetime {{ time { "12:00" } }}, g before t, {g, t} within 5;
speeding(s) <- r: seen(s, k), k > 12;
rough(m) <- w: sea:swell(m, _), m >= 2.5;

DETECT heard { } ON event w: whistle {{ }} END
