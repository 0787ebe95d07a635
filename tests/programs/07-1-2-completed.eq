-- Follows thesis §7.1.2 (completed orders): a requested book has reached the lending desk, over the parcel in which
-- it travelled.

DETECT
  ready {
    nr { var I },
    title { var P }
  }
ON
  and {
    event o: request {{
      nr { var I },
      title { var P }
    }},
    event s: packed {
      request-nr { var I },
      parcel { var T }
    },
    event d: scan {{
      parcel { var T },
      place { "lending desk" }
    }}
  } where { o before s, s before d, {o,d} within 10 days }
END
