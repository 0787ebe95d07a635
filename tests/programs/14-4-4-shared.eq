-- Follows thesis §14.4.4 (equal simple queries): two rules about parcels ask the same of an event in other words, so a
-- plan may share it.

DETECT
  long-way { var X, var Y }
ON
  event i: parcel{{ from[var X], to[var Y] }}
END

DETECT
  back { var Z, var Y }
ON
  and {
    event i: parcel{{ to[var Z], from[var Y] }},
    event j: refused{{ var Z }}
  }
  where { i before j, {i,j} within 2w }
END
