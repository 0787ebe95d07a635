-- Follows thesis §7.1.3 (late deliveries): a parcel was not scanned at the lending desk in time, with a timer for
-- small requests and another for large ones in the branches of an `or`.

DETECT
  late[ var I, var T ]
ON
  and {
    event o: request {{
      nr { var I },
      copies { var Q }
    }},
    event s: packed {
      request-nr{ var I },
      parcel { var T }
    }
    or {
      event w: timer:extend[event s, 2 days] where { var Q < 4 },
      event w: timer:extend[event s, 3 days] where { var Q >= 4 }
    }
    while w: not scan {{
      parcel { var T },
      place { "lending desk" }
    }}
  }
  where { {o,s} within 2 days }
END
