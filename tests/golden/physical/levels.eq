-- Rules that are cut differently: the next level gets what it reads by another key.
EVENT a(x: int, y: string, z: float);
EVENT b(x: int, y: string);
EVENT note(text: string[]);

pair(x, y) <- i: a(x, y, _), j: b(x, _), {i, j} within 2h;
late(y) <- i: pair(x, y), j: b(_, y), i before j, {i, j} within 1h;
apart() <- i: a(_, _, 5), j: b(_, "k"), {i, j} within 1 min;
noted(t) <- n: note(t);
