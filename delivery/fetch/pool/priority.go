package pool

// Priority is the kind of object that a task runs for; the smaller goes first. Within each, requested tasks go before those that only
// repeat after an interval.
type Priority int

// Platform is the platform repository, which has its own slot. Repository is any other Repository; an App never takes the last slots from
// one.
const (
	Platform Priority = iota
	Repository
	App
	priorities
)

// String is the priority as a label of a metric.
func (p Priority) String() string { return [...]string{"platform", "repository", "app"}[p] }
