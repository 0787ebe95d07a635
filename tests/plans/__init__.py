"""This package shows that plans mean what rules mean, and that what the analysis says of them is true."""
