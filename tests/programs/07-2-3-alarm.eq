-- Follows thesis §7.2.3 (combined alarm): a bed of the greenhouse is flooded when two different probes are wet and a
-- leak was found there; three silent probes of one bed raise a general alarm.

DETECT
  flooded {
    bed { var A }
  }
ON
  and {
    event t1: moisture-mean {{
      probe { var S1 },
      beds {{
        bed { var A }
      }},
      mean { var T1 }
    }},
    event t2: moisture-mean {{
      probe { var S2 },
      beds {{
        bed { var A }
      }},
      mean { var T2 }
    }},
    event s: leak-alarm {{
      beds {{
        bed { var A }
      }}
    }}
  }
  where { var T1 > 85, var T2 > 85, var S1 != var S2,
          {t1,t2,s} within 150 seconds }
END

DETECT
  silence-counter {
    bed { var A },
    probes { count(all var S) }
  }
ON
  and {
    event f: silent {{
      beds {{
        bed { var A }
      }}
    }},
    event w: timer:from-end-backward[event f, 150 sec],
    while w: collect silent {{
      probe { var S },
      beds {{
        bed { var A }
      }}
    }}
  }
END

DETECT
  general-alarm {
    bed { var A }
  }
ON
  event f: silence-counter {
    bed { var A },
    probes { var C }
  }
  where { var C >= 3 }
END
