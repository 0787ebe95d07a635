-- Follows thesis §6.8 (metric relations): lectures of one speaker that lie close together or far apart.

EVENT lecture(speaker: string, hall: string) LASTS AT MOST 4h;

DETECT
  packed { var S }
ON
  and {
    event a: lecture {{ speaker { var S } }},
    event b: lecture {{ speaker { var S } }},
    event c: lecture {{ speaker { var S } }}
  } where {{a, b, c} within 1 day, a before b, b before c}
END

DETECT
  brief { var S }
ON
  event a: lecture {{ speaker { var S } }}
  where { {a} within 3 hours }
END

DETECT
  time-for-a-walk { var S }
ON
  and {
    event a: lecture {{ speaker { var S } }},
    event b: lecture {{ speaker { var S } }}
  } where { {a,b} 2 hours apart, {a b} within 10 hours, a before b }
END

DETECT
  way-between-halls { var S }
ON
  and {
    event a: lecture {{ speaker { var S }, hall { var H1 } }},
    event b: lecture {{ speaker { var S }, hall { var H2 } }}
  } where { {a,b} apart-by 45 min, {a,b} within 5h30m, a before b, var H1 != var H2 }
END
