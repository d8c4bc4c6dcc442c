package guardrails

// UsualClasses are the cluster's default classes, which the API server gives what names none; "" where there is none, or where it is not known.
type UsualClasses struct{ Storage, Ingress, Priority string }
