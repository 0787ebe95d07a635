-- Follows thesis §6.9 (aggregation): at the end of each market day the mean price of every flower goes to the
-- market's office.

RAISE
  to(recipient="http://localhost:8099/market-office",
     transport="http")
  {
    day-prices {
      all line {
        flower { var S },
        mean { avg(all var P) }
      } group-by var S
    }
  }
ON
  and {
    event t: cal:market-day{{ }},
    while t: collect sold {
      flower { var S },
      price { var P }
    }
  }
END
