-- q8, monitor new users: who registered and offered something in the same ten seconds.

EVENT person(id: int, name: string, email: string, city: string, state: string);
EVENT auction(id: int, item: string, initial: int, reserve: int, seller: int, category: int);

new-seller(id, name) <-
    t: timer:datetime(second: s),
    s mod 10 = 0,
    w: from-end-backward(t, 10s),
    p: person(id, name, _, _, _),
    a: auction(_, _, _, _, id, _),
    p during[0s, *, 1us, *] w,
    a during[0s, *, 1us, *] w;
