-- Rules that differ in constants run as one, and what they ask for filters what is read.
EVENT reading(sensor: string, kind: int, value: float);

hot-a() <- r: reading("a", 1, v), v > 30;
hot-b() <- r: reading("b", 1, v), v > 35;
hot-c() <- r: reading("c", 2, v), v > 20;
