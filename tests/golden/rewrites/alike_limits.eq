EVENT login(user: string);
EVENT failed(user: string, times: int);

soon(u) <- f: failed(u, 3), l: login(u), f before[0, 60 sec] l;
later(u) <- f: failed(u, 3), l: login(u), f before[0, 50 sec] l;
last(u) <- f: failed(u, 5), l: login(u), f before[0, 40 sec] l;
never(u) <- f: failed(u, 5), l: login(u), f before[0, 35 sec] l;
