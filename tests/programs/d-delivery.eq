-- Follows docs/delivery.md: messages go where rules say, by what the program declares.
EVENT reading(sensor: string, degrees: float) AT LEAST 1 sec APART PER sensor;
EVENT duty(desk: string);

TRANSPORT audit IS http(url="https://127.0.0.1/audit", timeout=5 sec, retries=8, secret=env("AUDIT_TOKEN"));
TRANSPORT pager IS command(argv=["notify", "--urgent"]);

RAISE to(recipient="audit", transport="http") { hot { sensor { var S } } }
ON event r: reading {{ sensor { var S }, degrees { var D } }} where { var D > 90 } END

RAISE to(recipient=var K, transport="console") { watch { desk { var K }, sensor { var S } } }
ON and {
  event d: duty {{ desk { var K } }},
  event r: reading {{ sensor { var S }, degrees { var D } }}
} where { var D > 95, {d, r} within 1 hour } END
