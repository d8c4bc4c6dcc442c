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

// Place is who used something, and where: an app of a project in a cluster.
type Place struct {
	Tenant, Project string
	// App is "" for what belongs to the project, and to none of its apps.
	App string
	// Cluster is where it is used.
	Cluster string
}

// Used has the amounts of one place within one hour.
type Used struct {
	Place
	// Hour is the beginning of the hour.
	Hour    time.Time
	Amounts Amounts
}

// Minute has the amounts that were measured in one minute of one cluster. A place without amounts used nothing.
type Minute struct {
	Cluster string
	// Begin is the beginning of the minute.
	Begin time.Time
	// Groups are the groups of meters that were measured during the whole minute.
	Groups []string
	// Used has the amounts of the meters of Groups.
	Used map[Place]Amounts
}

// Covered has the minutes of an hour in which a group of meters was measured.
type Covered struct {
	Cluster string
	Group   string
	Hour    time.Time
	// Minutes has the bit 1<<n if minute n was measured.
	Minutes uint64
}

// UsageQuery selects hours.
type UsageQuery struct {
	// Tenant is "" for all. Project and App are nil for all.
	Tenant       string
	Project, App *string
	// From is the beginning of the first hour, Until that of the first hour that is not read any more.
	From, Until time.Time
	// After and AfterHour are where the answer begins, in its order: with this hour of this place, or the next one. The zero values begin with the first.
	After     Place
	AfterHour time.Time
	Limit     int
}

// Usage stores the amounts that apps used, for KeepUsage.
type Usage interface {
	// AddMinute adds the amounts of a minute to those of its hour. Groups whose minute was added before are skipped, so several managers may add the
	// same minute.
	AddMinute(ctx context.Context, m Minute) error
	// SetUsage sets the amounts of the given meters in one cluster, and leaves all other meters as they are. It returns how many amounts changed, and
	// records the events of the tenants with changed amounts. It returns ErrMeasured, and sets nothing, if AddMinute added one of these meters in its hour.
	SetUsage(ctx context.Context, all []Used, events []Event) (changed int, err error)
	// ListUsage returns hours, ordered by tenant, project, app, cluster and hour.
	ListUsage(ctx context.Context, q UsageQuery) ([]Used, error)
	// ListCovered returns the measured minutes of the hours from from to before until, ordered by cluster, group and hour.
	ListCovered(ctx context.Context, from, until time.Time) ([]Covered, error)
}
