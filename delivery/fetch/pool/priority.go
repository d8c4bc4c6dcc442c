package pool

// Priority is for whom a task is run; the smaller goes first. Within each, what was requested goes before what is only looked
// at again because its interval is over.
type Priority int

// Platform is the platform repository, which has a slot of its own. Repository is any other Repository; an App never takes the last
// slots from one.
const (
	Platform Priority = iota
	Repository
	App
	priorities
)

// String is the priority as a label of a metric.
func (p Priority) String() string { return [...]string{"platform", "repository", "app"}[p] }
