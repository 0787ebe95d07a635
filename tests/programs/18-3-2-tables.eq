-- Follows thesis §18.3.2 (event and other data): a reader takes a book from the monthly list, and it goes to the address
-- that is on file.

TABLE household(name: string, address: string) FROM "households.csv" FORMAT csv;
TABLE branch(code: string, zone: int) FROM "branches.csv";
TABLE barred(name: string);
TABLE holiday(date: string) FORMAT csv FROM "holidays.csv";

DETECT
  request {
    nr { var I },
    reader { var C },
    title { var P },
    copies { var Q },
    rebate { var D },
    send-to { var S }
  }
ON
  and {
    event o: monthly-list {
      key { var K },
      title { var P },
      rebate { var D },
      most-copies { var MQ }
    },
    event a: pick {
      key { var K },
      nr { var I },
      reader { var C },
      copies { var Q }
    }
    household {{
      name { var C },
      address { var S }
    }}
  } where { o before a, {o,a} within 4 weeks, var Q <= var MQ }
END

-- rows that must be missing
DETECT
  lend { reader { var C }, zone { var Z } }
ON
  and {
    event a: at-desk {{ reader { var C }, branch { var B }, date { var D } }},
    branch {{ code { var B }, zone { var Z } }},
    not barred {{ name { var C } }},
    not holiday {{ date { var D } }}
  }
END

-- the same in arrow form
deliver(n, c, s) <- o: listed(k, p), a: picked(k, n, c), household(c, s), o before a, {o, a} within 4w;
lendable(c, z) <- a: asked(c, b, d), branch(b, z), not barred(c), not holiday(d);
nearby(c) <- a: asked(c, b, _), branch(code: b, zone: 1), household(name: c, address: s), s != "";
