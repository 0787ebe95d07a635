-- Conditions that become keys, and some that do not.
EVENT c(id: int, v: int);
EVENT d(id: int, w: int);
EVENT e(id: int, w: int);
sum(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v + w = 999;
difference(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, w = 999 - v;
product(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v = 2 * w;
remainder(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v mod 10 = w mod 10, v > w + 5;
same(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v = w;
plain(v) <- a: c(_, v), b: d(_, v), {a,b} within 1h, v + 1 = v * 2;
later(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, begin(a) + w = end(b) + v;
mixed(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v * w = 12;
double(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 1h, v + w / 2 = 12;
three(i, j, k) <- a: c(i, v), b: d(j, w), f: e(k, w), {a,b,f} within 1h, v = w + 1;
chain(i, j, k) <- a: c(i, v), b: d(j, w), f: e(k, u), {a,b,f} within 1h, v + w = 999, u = v - w;
