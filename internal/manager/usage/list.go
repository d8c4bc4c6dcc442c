package usage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// batch is the number of rows, of an hour of an app each, that one query of the store returns.
const batch = 2000

type listInput struct {
	page.OfTenant
	Project string    `query:"project" maxLength:"63" doc:"Only of this project. Default: the only one of the caller; all, for those of a tenant."`
	App     string    `query:"app" maxLength:"63" doc:"Only of this app."`
	From    time.Time `query:"from" doc:"The beginning of an hour. Default: that of the day of until."`
	Until   time.Time `query:"until" doc:"The beginning of an hour, the first one that is not read. Default: that of the next hour."`
	Step    string    `query:"step" enum:"hour,day,month" default:"hour" doc:"What is summed up: hours, or days and months in UTC. 31 days are answered by hours at most, and 400 otherwise."`
}

func (o *Operations) list(ctx context.Context, in *listInput) (*answer[Page], error) {
	now := o.Now().UTC()
	of, err := spanOf(in.From, in.Until, in.Step, now)
	if err != nil {
		return nil, err
	}
	q, err := in.query(auth.Of(ctx).Grant, of)
	if err != nil {
		return nil, err
	}
	covered, err := o.Store.ListCovered(ctx, of.from, of.until)
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	coverage := coverageOf(covered, o.Cluster, now)
	found, err := o.sums(ctx, q, of, in.Limit+1)
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	items, missing := make([]Usage, 0, len(found)), map[clusterSpan]map[meter.Group]int{}
	for _, sum := range found {
		at := clusterSpan{sum.Cluster, sum.span}
		if missing[at] == nil {
			missing[at] = coverage.of(sum.Cluster, sum.span)
		}
		items = append(items, Usage{
			Tenant: sum.Tenant, Project: sum.Project, App: sum.App, Cluster: sum.Cluster, From: sum.span.from, Until: sum.span.until,
			Meters: amountsOf(sum.Amounts, missing[at]),
		})
	}
	list := Page{List: page.Of(in.Query, items, key)}
	if in.Cursor == "" {
		list.Gaps = coverage.gaps(of)
	}
	return &answer[Page]{list}, nil
}

// query returns the query of the store for a request. Tenants and projects that the caller may not read are answered as if they did not exist.
func (in *listInput) query(grant access.Grant, of span) (q store.UsageQuery, err error) {
	tenant, one := grant.Tenant()
	if in.Tenant != "" {
		tenant = in.Tenant
	}
	switch {
	case in.Tenant == "" && !one:
		return q, refuse(grant, "The caller has rights in several tenants.", "query.tenant")
	case !grant.Knows(tenant):
		return q, problem.New(problem.NotFound, "")
	}
	project := in.Project
	if project == "" && !grant.May(access.Usage, access.Read, tenant, "") {
		if project = onlyProject(grant, tenant); project == "" {
			return q, refuse(grant, "The caller has rights in several projects.", "query.project")
		}
	}
	if !grant.May(access.Usage, access.Read, tenant, project) {
		return q, problem.New(problem.NotFound, "")
	}
	q = store.UsageQuery{Tenant: tenant, From: of.from, Until: of.until, Limit: batch}
	if project != "" {
		q.Project = &project
	}
	if in.App != "" {
		q.App = &in.App
	}
	q.After, q.AfterHour, err = in.after(tenant)
	return q, err
}

func refuse(grant access.Grant, detail, location string) error {
	if len(grant) == 0 {
		return problem.New(problem.Forbidden, "")
	}
	return problem.New(problem.Invalid, detail, problem.Fault{Location: location, Message: "has to name one of them"})
}

// onlyProject returns the project in which the caller has all of its rights within a tenant; "" if there are several.
func onlyProject(grant access.Grant, tenant string) (project string) {
	for _, scope := range grant {
		if scope.Tenant != tenant {
			continue
		}
		if project != "" && project != scope.Project {
			return ""
		}
		project = scope.Project
	}
	return project
}

// clusterSpan is a span of time in a cluster. All apps of the cluster miss the same minutes, so they are counted once.
type clusterSpan struct {
	cluster string
	span    span
}

// sum is what an app, or a project beside its apps, used within one step.
type sum struct {
	store.Place
	span    span
	Amounts meter.Amounts
}

// amountsOf returns amounts sorted by meter, each with the number of minutes in which it was not measured.
func amountsOf(all meter.Amounts, missing map[meter.Group]int) []Amount {
	amounts := []Amount{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		amounts = append(amounts, Amount{Name: name, Unit: meter.UnitOf(name), Amount: meter.Text(all[name]), Missing: missing[meter.GroupOf(name)]})
	}
	return amounts
}

// sums reads hours from the store, sorted by place and time, and adds them up to at most limit sums. The last sum is complete too: sums stops reading
// only when the hour of the next sum was read, or no hour is left.
func (o *Operations) sums(ctx context.Context, q store.UsageQuery, of span, limit int) (all []sum, err error) {
	for {
		hours, err := o.Store.ListUsage(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, used := range hours {
			if all = add(all, used, of); len(all) > limit {
				return all[:limit], nil
			}
		}
		if len(hours) < q.Limit {
			return all, nil
		}
		q.After, q.AfterHour = hours[len(hours)-1].Place, hours[len(hours)-1].Hour.Add(time.Hour)
	}
}

// add adds an hour to the last sum. If the hour belongs to another place or step, it becomes a new sum.
func add(all []sum, used store.Used, of span) []sum {
	last := len(all) - 1
	if last < 0 || all[last].Place != used.Place || !used.Hour.Before(all[last].span.until) {
		all, last = append(all, sum{used.Place, of.stepOf(used.Hour), meter.Amounts{}}), last+1
	}
	all[last].Amounts.Add(used.Amounts)
	return all
}

// key is the cursor behind an item: its place, and the end of its step.
func key(u Usage) string {
	return strings.Join([]string{u.Tenant, u.Project, u.App, u.Cluster, u.Until.Format(time.RFC3339)}, "/")
}

// after returns the place and the time at which the previous page ended, from the cursor; both are zero for the first page.
func (in *listInput) after(tenant string) (place store.Place, until time.Time, err error) {
	text, err := in.Key()
	if err != nil || text == "" {
		return place, until, err
	}
	parts := strings.Split(text, "/")
	if len(parts) == 5 {
		until, err = time.Parse(time.RFC3339, parts[4])
	}
	if len(parts) != 5 || err != nil || tenant != "" && parts[0] != tenant {
		return place, until, problem.New(problem.BadRequest, "The cursor is not one that this list answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor of this list"})
	}
	return store.Place{Tenant: parts[0], Project: parts[1], App: parts[2], Cluster: parts[3]}, until, nil
}
