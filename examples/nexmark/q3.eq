-- q3, local item suggestion: who from Oregon, Idaho or California offers something of category 10? Whoever has registered
-- in the hour before: without a limit all people would have to be kept forever.

EVENT person(id: int, name: string, email: string, city: string, state: string);
EVENT auction(id: int, item: string, initial: int, reserve: int, seller: int, category: int);

local(name, city, state, a) <-
    p: person(id, name, _, city, state),
    o: auction(a, _, _, _, id, 10),
    p before[0s, 1h] o,
    state = "OR" or state = "ID" or state = "CA";
