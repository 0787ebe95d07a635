-- q8, monitor new users: who registered and offered something in the same ten seconds.

EVENT person(id: int, name: string, email: string, city: string, state: string);
EVENT auction(id: int, item: string, initial: int, reserve: int, seller: int, category: int);

new-seller(id, name) <-
    w: every 10s,
    p: person(id, name, _, _, _),
    a: auction(_, _, _, _, id, _),
    p during[0s, *, 0s, *] w,
    a during[0s, *, 0s, *] w;
