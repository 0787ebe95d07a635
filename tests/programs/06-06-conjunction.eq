-- Follows thesis §6.6 (conjunction): a reserved wagon has left, put together from the reservation and the
-- departure with the same number.

DETECT
  under-way {
    reservation { var O },
    train { var I },
    goods { var S }
  }
ON
  and {
    event r: reserved {
      reservation { var O },
      wagon {{
        goods { var S }
      }}
    },
    event d: departed {{
      reservation { var O },
      train { var I }
    }}
  }
END

-- three events, and no comma between them
DETECT
  handed-over { var O }
ON
  and {
    event r: reserved { reservation { var O }, wagon {{ }} }
    event d: departed {{ reservation { var O }, train { var I } }}
    event a: arrived {{ train { var I } }}
  }
END
