package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

// usageOf returns the lock for writing the usage of a cluster.
func usageOf(cluster string) string { return "usage/" + cluster }

// batch is the largest number of rows that one statement inserts.
const batch = 256

// AddMinute implements store.Usage. Each statement is a round trip to the database, so the number of statements hardly grows with the number of places.
func (s *Store) AddMinute(ctx context.Context, m store.Minute) error {
	err := s.db.Write(ctx, usageOf(m.Cluster), func(ctx context.Context, tx *database.Tx) error {
		hour, fresh := m.Begin.Truncate(time.Hour), map[meter.Group]bool{}
		for _, group := range m.Groups {
			added, err := cover(ctx, tx, store.Covered{Cluster: m.Cluster, Group: group, Hour: hour, Minutes: 1 << m.Begin.Minute()})
			if err != nil {
				return err
			}
			fresh[group] = added
		}
		added := map[store.Place]meter.Amounts{}
		for place, all := range m.Used {
			if amounts := of(fresh, all); len(amounts) > 0 {
				added[place] = amounts
			}
		}
		return addToHour(ctx, tx, m.Cluster, hour, added)
	})
	if err != nil {
		return fmt.Errorf("storing what was used: %w", err)
	}
	return nil
}

// of returns those amounts of the groups' meters that are not 0.
func of(groups map[meter.Group]bool, all store.Amounts) meter.Amounts {
	kept := meter.Amounts{}
	for name, amount := range all {
		if groups[meter.GroupOf(name)] && amount.Sign() != 0 {
			kept[name] = amount
		}
	}
	return kept
}

// used has the ID of a place, and the amounts that are stored for it in one hour.
type used struct {
	id      int64
	amounts meter.Amounts
}

// addToHour adds amounts to those stored for an hour of one cluster.
func addToHour(ctx context.Context, tx *database.Tx, cluster string, hour time.Time, added map[store.Place]meter.Amounts) error {
	if len(added) == 0 {
		return nil
	}
	stored, err := usedIn(ctx, tx, cluster, hour)
	if err != nil {
		return err
	}
	var absent []store.Place
	for place := range added {
		if _, is := stored[place]; !is {
			absent = append(absent, place)
		}
	}
	if len(absent) > 0 {
		if err := usePlaces(ctx, tx, hour, absent); err != nil {
			return err
		}
		if stored, err = usedIn(ctx, tx, cluster, hour); err != nil {
			return err
		}
	}
	var arguments []any
	for _, place := range slices.SortedFunc(maps.Keys(added), comparePlaces) {
		all := stored[place]
		all.amounts.Add(added[place])
		arguments = append(arguments, all.id, micros(hour), all.amounts.String())
	}
	return insertMany(ctx, tx, `INSERT INTO usage_hours (place, hour, amounts) VALUES `, setAmounts, arguments)
}

// setAmounts is the end of a statement that inserts hours: it replaces the amounts of an hour that exists.
const setAmounts = ` ON CONFLICT (place, hour) DO UPDATE SET amounts = excluded.amounts`

// usedIn returns the places of a cluster that used something in an hour or later, with their amounts of that hour.
func usedIn(ctx context.Context, tx *database.Tx, cluster string, hour time.Time) (map[store.Place]used, error) {
	all := map[store.Place]used{}
	return all, database.Each(ctx, tx, func(scan database.Scan) (err error) {
		place, is, text := store.Place{Cluster: cluster}, used{}, ""
		if err := scan(&is.id, &place.Tenant, &place.Project, &place.App, &text); err != nil {
			return err
		}
		is.amounts, err = meter.Read(text)
		all[place] = is
		return err
	}, `SELECT id, tenant, project, app, COALESCE(amounts, '') FROM usage_places LEFT JOIN usage_hours ON place = id AND hour = ? WHERE last >= ? AND cluster = ?`, micros(hour), micros(hour), cluster)
}

// usePlaces inserts missing places, and records the hour as the last one in which they used something, unless they have a later one.
func usePlaces(ctx context.Context, tx *database.Tx, hour time.Time, places []store.Place) error {
	var arguments []any
	for _, place := range slices.SortedFunc(slices.Values(places), comparePlaces) {
		arguments = append(arguments, place.Tenant, place.Project, place.App, place.Cluster, micros(hour))
	}
	return insertMany(ctx, tx, `INSERT INTO usage_places (tenant, project, app, cluster, last) VALUES `,
		` ON CONFLICT (tenant, project, app, cluster) DO UPDATE SET last = excluded.last WHERE usage_places.last < excluded.last`, arguments)
}

// insertMany inserts rows. begin is the beginning of the statement, with the names of the columns; end is what follows the rows. Each statement inserts
// a power of two of rows, so a connection prepares only few different statements.
func insertMany(ctx context.Context, tx *database.Tx, begin, end string, arguments []any) error {
	columns := strings.Count(begin, ",") + 1
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for n := batch; n > 0; n /= 2 {
		for len(arguments) >= n*columns {
			if _, err := tx.Exec(ctx, begin+row+strings.Repeat(", "+row, n-1)+end, arguments[:n*columns]...); err != nil {
				return err
			}
			arguments = arguments[n*columns:]
		}
	}
	return nil
}

func comparePlaces(a, b store.Place) int {
	return slices.Compare([]string{a.Tenant, a.Project, a.App, a.Cluster}, []string{b.Tenant, b.Project, b.App, b.Cluster})
}

// cover records measured minutes, and reports whether one of them was new.
func cover(ctx context.Context, tx *database.Tx, c store.Covered) (added bool, err error) {
	var minutes int64
	err = tx.QueryRow(ctx, `SELECT minutes FROM usage_covered WHERE hour = ? AND cluster = ? AND meter_group = ?`, micros(c.Hour), c.Cluster, c.Group).Scan(&minutes)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if minutes|int64(c.Minutes) == minutes {
		return false, nil
	}
	_, err = tx.Exec(ctx, `INSERT INTO usage_covered (hour, cluster, meter_group, minutes) VALUES (?, ?, ?, ?) ON CONFLICT (hour, cluster, meter_group) DO UPDATE SET minutes = excluded.minutes`,
		micros(c.Hour), c.Cluster, c.Group, minutes|int64(c.Minutes))
	return true, err
}

// SetUsage implements store.Usage.
func (s *Store) SetUsage(ctx context.Context, all []store.Used, events []store.Event) (changed int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	err = s.db.Write(ctx, usageOf(all[0].Cluster), func(ctx context.Context, tx *database.Tx) error {
		changed = 0
		if err := refuseMeasured(ctx, tx, all); err != nil {
			return err
		}
		of := map[string]int{}
		for _, used := range all {
			n, err := setHour(ctx, tx, used)
			if err != nil {
				return err
			}
			changed, of[used.Tenant] = changed+n, of[used.Tenant]+n
		}
		for _, e := range events {
			if of[e.Tenant] == 0 {
				continue
			}
			if err := insertEvent(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("storing what was used elsewhere: %w", err)
	}
	return changed, nil
}

// refuseMeasured returns ErrMeasured if kubeop measured one of the meters in its hour.
func refuseMeasured(ctx context.Context, tx *database.Tx, all []store.Used) error {
	type measured struct {
		hour  int64
		group meter.Group
	}
	set, from, until := map[measured]bool{}, int64(math.MaxInt64), int64(0)
	for _, used := range all {
		for name := range used.Amounts {
			if group := meter.GroupOf(name); group != "" {
				hour := micros(used.Hour)
				set[measured{hour, group}], from, until = true, min(from, hour), max(until, hour)
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	return database.Each(ctx, tx, func(scan database.Scan) error {
		var of measured
		if err := scan(&of.hour, &of.group); err != nil {
			return err
		}
		if set[of] {
			return store.ErrMeasured
		}
		return nil
	}, `SELECT hour, meter_group FROM usage_covered WHERE hour >= ? AND hour <= ? AND cluster = ?`, from, until, all[0].Cluster)
}

// setHour sets the amounts of a place in an hour, and returns how many of them changed.
func setHour(ctx context.Context, tx *database.Tx, of store.Used) (changed int, err error) {
	if err := usePlaces(ctx, tx, of.Hour, []store.Place{of.Place}); err != nil {
		return 0, err
	}
	var id int64
	var text string
	if err := tx.QueryRow(ctx, `SELECT id, COALESCE(amounts, '') FROM usage_places LEFT JOIN usage_hours ON place = id AND hour = ? WHERE tenant = ? AND project = ? AND app = ? AND cluster = ?`,
		micros(of.Hour), of.Tenant, of.Project, of.App, of.Cluster).Scan(&id, &text); err != nil {
		return 0, err
	}
	amounts, err := meter.Read(text)
	if err != nil {
		return 0, err
	}
	if changed = set(amounts, of.Amounts); changed == 0 {
		return 0, nil
	}
	return changed, insertMany(ctx, tx, `INSERT INTO usage_hours (place, hour, amounts) VALUES `, setAmounts, []any{id, micros(of.Hour), amounts.String()})
}

// set sets amounts, and returns how many of them changed.
func set(amounts meter.Amounts, to store.Amounts) (changed int) {
	for name, amount := range to {
		before := amounts[name]
		if before == nil && amount.Sign() == 0 || before != nil && before.Cmp(amount) == 0 {
			continue
		}
		amounts[name] = amount
		changed++
	}
	return changed
}

// ListUsage implements store.Usage.
func (s *Store) ListUsage(ctx context.Context, q store.UsageQuery) ([]store.Used, error) {
	statement, arguments := usageStatement(q)
	all, err := database.All(ctx, s.db, readUsed, statement, arguments...)
	if err != nil {
		return nil, fmt.Errorf("reading what was used: %w", err)
	}
	return all, nil
}

// usageStatement reads the index of the places in order, and the hours of each place. So the cost of a page depends on its size, and not on how long
// usage is kept. CROSS JOIN makes SQLite join in this order.
func usageStatement(q store.UsageQuery) (statement string, arguments []any) {
	where, arguments := ofTenant(q.Tenant)
	columns, marks, after := "tenant, project, app, cluster", "?, ?, ?, ?", []any{q.After.Tenant, q.After.Project, q.After.App, q.After.Cluster}
	if q.Tenant != "" { // Otherwise the index would end with the tenant.
		columns, marks, after = "project, app, cluster", "?, ?, ?", after[1:]
	}
	if q.Project != nil {
		where, arguments = where+"project = ? AND ", append(arguments, *q.Project)
	}
	if q.App != nil {
		where, arguments = where+"app = ? AND ", append(arguments, *q.App)
	}
	return `SELECT tenant, project, app, cluster, hour, amounts FROM usage_places CROSS JOIN usage_hours
		WHERE ` + where + `(` + columns + `) >= (` + marks + `) AND ((` + columns + `) > (` + marks + `) OR hour >= ?) AND last >= ? AND place = id AND hour >= ? AND hour < ?
		ORDER BY tenant, project, app, cluster, hour LIMIT ?`, slices.Concat(arguments, after, after, []any{micros(q.AfterHour), micros(q.From), micros(q.From), micros(q.Until), q.Limit})
}

func readUsed(scan database.Scan) (u store.Used, err error) {
	var hour int64
	var text string
	if err := scan(&u.Tenant, &u.Project, &u.App, &u.Cluster, &hour, &text); err != nil {
		return u, err
	}
	u.Hour = fromMicros(hour)
	u.Amounts, err = meter.Read(text)
	return u, err
}

// ListCovered implements store.Usage.
func (s *Store) ListCovered(ctx context.Context, from, until time.Time) ([]store.Covered, error) {
	all, err := database.All(ctx, s.db, func(scan database.Scan) (c store.Covered, err error) {
		var hour, minutes int64
		err = scan(&c.Cluster, &c.Group, &hour, &minutes)
		c.Hour, c.Minutes = fromMicros(hour), uint64(minutes)
		return c, err
	}, `SELECT cluster, meter_group, hour, minutes FROM usage_covered WHERE hour >= ? AND hour < ? ORDER BY cluster, meter_group, hour`, micros(from), micros(until))
	if err != nil {
		return nil, fmt.Errorf("reading when was measured: %w", err)
	}
	return all, nil
}
