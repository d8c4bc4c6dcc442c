package pool

// overflow are, by tenant, the sources for which a task could not wait, in the order in which they are told that one may.
type overflow map[string]*refusals

type refusals struct {
	order []string
	room  map[string]func()
}

// add notes a task that was refused.
func (o overflow) add(t *Task) {
	if t.Room == nil || o == nil {
		return
	}
	of := o[t.Tenant]
	if of == nil {
		of = &refusals{room: map[string]func(){}}
		o[t.Tenant] = of
	}
	if of.room[t.Source] == nil {
		of.order = append(of.order, t.Source)
	}
	of.room[t.Source] = t.Room
}

// next returns what tells the next of a tenant that there is room for one.
func (o overflow) next(tenant string) func() {
	of := o[tenant]
	if of == nil {
		return func() {}
	}
	source := of.order[0]
	room := of.room[source]
	delete(of.room, source)
	if of.order = of.order[1:]; len(of.order) == 0 {
		delete(o, tenant)
	}
	return room
}
