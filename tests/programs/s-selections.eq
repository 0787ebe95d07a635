-- Follows thesis §3.2.7 (instance selection): what is chosen by when it happens, and what stands in the order of time.
EVENT alarm(tank: string);
EVENT ack(tank: string, by: string);
EVENT level(tank: string, m: float);
EVENT shift(name: string) LASTS AT MOST 8 hours;

acked(t, who) <- a: alarm(t), k: next ack(t, who) after a within 30m without { alarm, level(t, _) };
seen-at(t, m) <- a: alarm(t), last level(t, m) before a within 10m where { m > 0.5 };
opened(s, t) <- w: shift(s), a: first alarm(t) in w;
closed(s, t) <- w: shift(s), a: last alarm(t) in w;
course(s, first(m), last(m), nth(m, 2), list(m), top(m, 3 by end(l))) <-
    w: shift(s),
    while w: collect l: level(t, m),
    having { max(end(l)) < end(w) };

-- A name is no keyword where it cannot be one.
after(next) <- next: shift(next), last: alarm(_), next before last, {next, last} within 9h;
