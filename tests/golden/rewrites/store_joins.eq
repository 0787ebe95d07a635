EVENT smoke(room: int, level: int) RATE 1 per sec;
EVENT heat(room: int, degrees: int) RATE 1 per sec;
EVENT motion(room: int) RATE 50 per sec;

fire(r, s) <- a: smoke(r, l), b: heat(s, d), m: motion(_), {a, b, m} within 1 min, l + d = 120;
