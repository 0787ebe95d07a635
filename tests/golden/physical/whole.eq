-- Why rules have one partition.
EVENT a(x: int, y: string);
EVENT link(from: int, to: int);

noon() <- t: timer:datetime(time: "12:00");
after(x) <- i: a(x, _), t: timer:datetime(minute: 0), {i, t} within 1 min;
each-noon(count(x)) <- t: timer:datetime(time: "12:00"), w: extend-begin(t, 1h), while w: collect a(x, _);
path(f, t) <- l: link(f, t);
path(f, t) <- p: path(f, m), l: link(m, t), {p, l} within 1h;
walk(f, t) <- l: link(f, t);
walk(f, t) <- p: walk(f, m), l: walk(m, t), {p, l} within 1h;
signal() <- e: algebra ((a(1, _); a(2, _))[2 sec]);
