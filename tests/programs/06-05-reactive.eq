-- Follows thesis §6.5 (reactive rules): hands heavy bookings on to the loading office, the console and a program.

DETECT
  heavy-booking { waybill { var I }, goods { var S } }
ON
  event b: booking {{ waybill { var I }, goods { var S }, tonnes { var T } }} where { var T > 60 }
END

RAISE
  to(recipient="http://localhost:8099/loading-office",
     transport="http")
  {
    var B
  }
ON
  event b: var B -> heavy-booking {{ }}
END

RAISE
  to(recipient="stdout", transport="console") {
    seen { number { var I }, var G }
  }
ON
  event b: heavy-booking {{ waybill { var I }, var G -> goods {{ }} }}
END

RAISE
  to(recipient="logger -t freight", transport="command") {
    waybill [ var I ]
  }
ON
  event b: heavy-booking {{ waybill { var I } }}
END
