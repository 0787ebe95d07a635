-- Follows thesis §6.4 (deductive rules): gives a name to bookings that fill much of a freight train.

DETECT
  heavy-booking {
    waybill { var I },
    shipper { var C },
    goods { var S }
  }
ON
  event b: booking {{
    waybill { var I },
    shipper { var C },
    goods { var S },
    tonnes { var P },
    wagons { var V }
  }}
  where { var P * var V >= 800 }
END
