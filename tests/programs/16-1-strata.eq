-- Follows thesis §16.1.1, fig. 16.1 (manual stratification): bees that were seen at two flowers, and again at a third
-- without having been caught meanwhile; the author orders the rules by hand.

STRATUM
  DETECT
    pair { all var X }
  ON
    and {
      event a: clover{{ var X }},
      event b: thyme{{ var X }}
    }
    where { {a,b} within 15 sec }
  END

END

STRATUM
  DETECT
    tour { all var X }
  ON
    and {
      event c: pair{{ var X }},
      event d: heather{{ var X }},
      while c: not caught { var X }
    }
    where { {c,d} within 40 sec, c before d }
  END

END

STRATUM
  RAISE
    to(recipient="tee tours.log", transport="command") {
      result { var X }
    }
  ON
    event f: var X -> tour {{ }}
  END

END
