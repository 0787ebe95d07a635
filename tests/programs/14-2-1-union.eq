-- Follows thesis §14.2.1 (union of rules): a visitor has paid, either at the desk or at the machine, and shown up.

admitted(x) <- i: entry(x), j: desk-payment(x);
admitted(x) <- i: entry(x), j: machine-payment(x);
