-- emit: complaint, big
EVENT order(id: string, customer: string, cents: int);
EVENT bill(id: string, cents: int);
EVENT mail(from: string, subject: string);

bought(who, id) <- o: order(id, who, _);
wrote(who, subject) <- m: mail(who, subject);
complaint(who, id) <- b: bought(who, id), w: wrote(who, "complaint"), b before w, {b, w} within 7 days;
costly(id, cents) <- b: bill(id, cents), cents > 10000;
big(id) <- c: costly(id, _);
