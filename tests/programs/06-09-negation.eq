-- Follows thesis §6.9 (negation): a reserved table at which nobody has sat down within an hour.

DETECT
  no-show {
    reservation { var I }
  }
ON
  and {
    event r: reserved {{
      reservation { var I },
      table {{ }}
    }},
    event t: timer:extend[event r, 1 hour],
    while t: not seated {
      reservation { var I }
    }
  }
END
