-- Follows thesis §7.1.3 (overdue orders): a request is unpacked for too long, which is sooner for few copies without
-- a rebate than for many.

DETECT
  waiting{ var I }
ON
  and {
    event o: request {{
      nr { var I },
      copies { var Q },
      without rebate {{ }}
    }}
    event w: timer:extend[
      event o,
      5 hours
    ],
    while w: not packed {{
      request-nr{ var I }
    }}
  } where { var Q < 4 }
END

DETECT
  waiting{ var I }
ON
  and {
    event o: request {{
      nr { var I },
      copies { var Q },
      rebate {{ }}
    }}
    event w: timer:extend[
      event o,
      9 hours
    ],
    while w: not packed {{
      request-nr{ var I }
    }}
  } where { var Q < 4 }
END

DETECT
  waiting{ var I }
ON
  and {
    event o: request {{
      nr { var I },
      copies { var Q }
    }}
    event w: timer:extend[
      event o,
      30 hours
    ],
    while w: not packed {{
      request-nr{ var I }
    }}
  } where { var Q >= 4 }
END
