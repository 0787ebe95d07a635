-- emit: overdue
EVENT order(id: string, product: string, qty: int);
EVENT shipped(id: string, tracking: string);
EVENT delivered(tracking: string);
EVENT paid(id: string, cents: int);

large(id, qty) <- o: order(id, p, qty), qty > 100;
overdue(id) <- l: large(id, qty), w: extend(l, 6h), while w: not shipped(id, _);
arrived(id) <- s: shipped(id, t), d: delivered(t), {s, d} within 7 days;
income(sum(c)) <- t: timer:datetime(time: "00:00"), w: extend-begin(t, 1 day), while w: collect paid(_, c);
RAISE to(recipient="http://accounts", transport="http") { unpaid { id { var I } } }
ON and { event a: arrived(var I), event w: extend[a, 14 days], while w: not paid(var I, var C) }
END
