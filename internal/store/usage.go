package store

import (
	"context"
	"time"

	"gopkg.in/inf.v0"
)

// KeepUsage is how long usage is kept.
const KeepUsage = 400 * 24 * time.Hour

// Amounts are exact amounts by the names of meters, see internal/meter.
type Amounts = map[string]*inf.Dec

// Place is what something is used by.
type Place struct {
	Tenant, Project string
	// App is "" for what belongs to the project, and to none of its apps.
	App string
	// Cluster is where it is used.
	Cluster string
}

// Used is what was used at a place within an hour.
type Used struct {
	Place
	// Hour is its beginning.
	Hour    time.Time
	Amounts Amounts
}

// Minute is what was measured in a minute of one cluster. What is not in it was not used.
type Minute struct {
	Cluster string
	// Begin is its beginning.
	Begin time.Time
	// Groups are the groups of meters that were measured from the beginning to the end.
	Groups []string
	// Used has amounts of these groups. Each place is in it once.
	Used map[Place]Amounts
}

// Covered says which minutes of an hour were measured.
type Covered struct {
	Cluster string
	Group   string
	Hour    time.Time
	// Minutes has the bit 1<<n for the minute n.
	Minutes uint64
}

// UsageQuery is which hours are read.
type UsageQuery struct {
	// Tenant is "" for all. Project and App are nil for all.
	Tenant       string
	Project, App *string
	// From and Until are beginnings of hours; that of Until is not read.
	From, Until time.Time
	// After is a place, and AfterHour an hour: what comes before both, in the order of the answer, is not read. The zero values begin with the first.
	After     Place
	AfterHour time.Time
	Limit     int
}

// Usage keeps what apps used, for KeepUsage.
type Usage interface {
	// AddMinute adds what was measured, of those groups whose minute was not added before: so it may be added again, and by several managers.
	AddMinute(ctx context.Context, m Minute) error
	// SetUsage sets the amounts of meters in one cluster, and leaves all other meters as they are. It returns how many amounts were others before, and records the events of those tenants
	// that have any. It returns ErrMeasured, and sets nothing, if AddMinute added one of these meters in its hour.
	SetUsage(ctx context.Context, all []Used, events []Event) (changed int, err error)
	// ListUsage returns hours in the order of tenants, projects, apps, clusters and hours.
	ListUsage(ctx context.Context, q UsageQuery) ([]Used, error)
	// ListCovered returns which minutes were measured in the hours from one to before another, in the order of clusters, groups and hours.
	ListCovered(ctx context.Context, from, until time.Time) ([]Covered, error)
}
