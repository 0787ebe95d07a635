EVENT login(user: string);
EVENT failed(user: string, times: int);

soon(u) <- f: failed(u, 3), l: login(u), f before[0, 60 sec] l;
later(u) <- f: failed(u, 3), l: login(u), f before[0, 50 sec] l;
last(u) <- f: failed(u, 5), l: login(u), f before[0, 40 sec] l;
never(u) <- f: failed(u, 5), l: login(u), f before[0, 35 sec] l;

gone(u) <- f: failed(u, t), w: extend(f, 60 sec), t > 3, while w: not login(u);
away(u) <- f: failed(u, t), w: extend(f, 50 sec), t > 2, while w: not login(u);
lost(u) <- g: failed(u, t), v: extend(g, 40 sec), t > 1, while v: not login(u);
quiet(name) <- f: failed(name, t), w: extend(f, 35 sec), t > 3, while w: not login(name);
