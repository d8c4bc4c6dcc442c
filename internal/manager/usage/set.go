package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// ahead is how far the clock of whoever sends amounts may be ahead of the manager's.
const ahead = 2 * time.Hour

// ForeignAmount is an amount that another program measured.
type ForeignAmount struct {
	Tenant  string    `json:"tenant" maxLength:"20" pattern:"^[a-z][a-z0-9]*$"`
	Project string    `json:"project" maxLength:"35" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	App     string    `json:"app,omitempty" maxLength:"63" pattern:"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" doc:"Empty for what belongs to the project, and to none of its apps."`
	Meter   string    `json:"meter" maxLength:"100" pattern:"^[a-z][a-z0-9]*([-./][a-z0-9]+)*$" example:"gpu.a100"`
	Hour    time.Time `json:"hour" doc:"The beginning of the hour."`
	Amount  string    `json:"amount" maxLength:"61" pattern:"^(0|[1-9][0-9]{0,39})(\\.[0-9]{1,20})?$" doc:"A decimal of 0 or more, which is kept exactly." example:"3600.5"`
}

type setInput struct {
	Body struct {
		Cluster string          `json:"cluster" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Where it was used. Meters that kubeop measures there itself are refused."`
		Amounts []ForeignAmount `json:"amounts" minItems:"1" maxItems:"1000" nullable:"false"`
	}
}

// Changes is the result of setting amounts.
type Changes struct {
	Changed int `json:"changed" doc:"How many amounts are new, or replaced a different one."`
}

func (o *Operations) set(ctx context.Context, in *setInput) (*answer[Changes], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	if !caller.Grant.May(access.Usage, access.Create, "", "") {
		return nil, problem.New(problem.Forbidden, "")
	}
	all, err := o.check(in, now)
	if err != nil {
		return nil, err
	}
	var events []store.Event
	for _, tenant := range tenantsOf(all) {
		if err := o.hasTenant(ctx, tenant); err != nil {
			return nil, err
		}
		event := caller.Event(ctx, now, "setUsage", "usage/"+in.Body.Cluster)
		event.Tenant = tenant
		events = append(events, event)
	}
	changed, err := o.Store.SetUsage(ctx, all, events)
	switch {
	case errors.Is(err, store.ErrMeasured):
		return nil, problem.New(problem.Conflict, "kubeop measured one of these meters in its cluster and hour itself.", problem.Fault{Location: "body.amounts", Message: "has a meter that was measured by kubeop in its hour"})
	case err != nil:
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[Changes]{Changes{changed}}, nil
}

// hasTenant returns an error about the request if the tenant does not exist, and another error if it is not known yet which tenants exist.
func (o *Operations) hasTenant(ctx context.Context, tenant string) error {
	err := o.Has(ctx, tenant)
	if none := (*problem.Problem)(nil); errors.As(err, &none) && none.Code == problem.NotFound {
		return problem.New(problem.Invalid, "A tenant is invalid.", problem.Fault{Location: "body.amounts", Message: "there is no tenant " + tenant})
	}
	return err
}

// tenantsOf returns the tenants of the amounts, each once.
func tenantsOf(all []store.Used) (tenants []string) {
	for _, each := range all {
		if !slices.Contains(tenants, each.Tenant) {
			tenants = append(tenants, each.Tenant)
		}
	}
	return tenants
}

// check returns the amounts as the store takes them, by place and hour. It checks what the schema of the request cannot express.
func (o *Operations) check(in *setInput, now time.Time) (all []store.Used, err error) {
	type place struct {
		store.Place
		hour time.Time
	}
	at := map[place]int{}
	for i, each := range in.Body.Amounts {
		field := fmt.Sprintf("body.amounts[%d].", i)
		if in.Body.Cluster == o.Cluster && meter.GroupOf(each.Meter) != "" {
			return nil, problem.New(problem.Conflict, "kubeop measures this meter in the cluster itself.", problem.Fault{Location: field + "meter", Message: "is measured by kubeop"})
		}
		hour := each.Hour.UTC()
		if !whole(hour) || hour.After(now.Add(ahead)) || hour.Before(now.Add(-store.KeepUsage)) {
			return nil, problem.New(problem.Invalid, "An hour is invalid.", problem.Fault{Location: field + "hour", Message: "has to be the beginning of an hour of the last 400 days"})
		}
		amount, err := meter.ParseAmount(each.Amount)
		if err != nil {
			return nil, problem.New(problem.Invalid, "An amount is invalid.", problem.Fault{Location: field + "amount", Message: err.Error()})
		}
		key := place{store.Place{Tenant: each.Tenant, Project: each.Project, App: each.App, Cluster: in.Body.Cluster}, hour}
		n, has := at[key]
		if !has {
			n, at[key] = len(all), len(all)
			all = append(all, store.Used{Place: key.Place, Hour: hour, Amounts: store.Amounts{}})
		}
		if all[n].Amounts[each.Meter] != nil {
			return nil, problem.New(problem.Invalid, "An amount is there twice.", problem.Fault{Location: field + "meter", Message: "is there before, of the same app and hour"})
		}
		all[n].Amounts[each.Meter] = amount
	}
	return all, nil
}
