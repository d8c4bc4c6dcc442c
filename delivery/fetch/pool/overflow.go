package pool

// overflow has, by tenant, the sources with a task that could not wait, in the order in which they may try again.
type overflow map[string]*refusals

type refusals struct {
	order []string
	retry map[string]func()
}

// add records a refused task.
func (o overflow) add(t *Task) {
	if t.Retry == nil || o == nil {
		return
	}
	of := o[t.Tenant]
	if of == nil {
		of = &refusals{retry: map[string]func(){}}
		o[t.Tenant] = of
	}
	if of.retry[t.Source] == nil {
		of.order = append(of.order, t.Source)
	}
	of.retry[t.Source] = t.Retry
}

// next returns the function by which the next source of a tenant tries again.
func (o overflow) next(tenant string) func() {
	of := o[tenant]
	if of == nil {
		return func() {}
	}
	source := of.order[0]
	retry := of.retry[source]
	delete(of.retry, source)
	if of.order = of.order[1:]; len(of.order) == 0 {
		delete(o, tenant)
	}
	return retry
}
