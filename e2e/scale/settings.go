package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// All tenants have the same number of projects and apps. Sizes count apps.
const (
	projectsOfTenant = 2
	appsOfProject    = 5
	appsOfTenant     = projectsOfTenant * appsOfProject
)

// Suspended apps belong to additional tenants.
const (
	suspendedOfProject = 100
	suspendedOfTenant  = 10_000
	maxSuspended       = 1_000_000
)

// maxTenants is limited by names of four digits, and by the addresses of hosts that do not answer.
const maxTenants = 9999

// The layouts: the repositories with the tenants' projects.
const (
	platformLayout = "platform"
	tenantLayout   = "tenant"
)

// settings are the options of the command line.
type settings struct {
	// tenants are the sizes as numbers of tenants, ascending.
	tenants []int
	layout  string
	pushes  int
	idle    time.Duration
	// hanging is the number of tenants with a repository on a host that accepts connections but never answers. refusing is the number of
	// those on a host that refuses connections.
	hanging, refusing int
	// suspended is the number of additional, suspended apps.
	suspended    int
	json         string
	budget, keep bool
}

// parseSettings reads the command line. The error flag.ErrHelp means that help was printed.
func parseSettings(args []string, out io.Writer) (settings, error) {
	s := settings{}
	f := flag.NewFlagSet("bench-scale", flag.ContinueOnError)
	f.SetOutput(out)
	tenants := f.Int("tenants", 1000, fmt.Sprintf("number of tenants; each has %d projects of %d apps", projectsOfTenant, appsOfProject))
	sizes := f.String("sizes", "", "several numbers of apps, such as 300,3000,10000: a cluster for each, and the figures side by side")
	f.StringVar(&s.layout, "repositories", platformLayout, "where the projects are: platform (in the platform repository) or tenant (a repository for each tenant)")
	f.IntVar(&s.pushes, "pushes", 30, "how many commits that change one app are measured")
	f.DurationVar(&s.idle, "idle", 10*time.Minute, "how long requests are counted while nothing happens; with -sizes in the largest only")
	f.IntVar(&s.hanging, "hosts-hanging", 0, "how many more tenants have a repository on a Git host that never answers; for -repositories tenant")
	f.IntVar(&s.refusing, "hosts-refusing", 0, "how many more tenants have a repository on a Git host that refuses connections")
	f.IntVar(&s.suspended, "suspended", 0, "how many more apps are declared that are suspended, to see what the record of 100,000 entries costs; for -repositories platform, without budgets")
	f.StringVar(&s.json, "json", "", "also write everything that was measured to this file")
	f.BoolVar(&s.budget, "budget", true, "fail when a budget is not kept")
	f.BoolVar(&s.keep, "keep", false, "leave cluster and operator running")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	err := errors.Join(s.setSizes(*tenants, *sizes), s.check())
	if f.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("what is %q? There are only flags", f.Arg(0)))
	}
	return s, err
}

func (s *settings) setSizes(tenants int, list string) error {
	s.tenants = []int{tenants}
	if list != "" {
		s.tenants = nil
		for size := range strings.SplitSeq(list, ",") {
			apps, err := strconv.Atoi(size)
			if err != nil || apps%appsOfTenant != 0 {
				return fmt.Errorf("-sizes: %q is no number of apps; it may be a multiple of %d", size, appsOfTenant)
			}
			s.tenants = append(s.tenants, apps/appsOfTenant)
		}
	}
	slices.Sort(s.tenants)
	if least, most := s.tenants[0], s.tenants[len(s.tenants)-1]; least < 1 || most > maxTenants {
		return fmt.Errorf("the number of tenants is %d to %d; it may be 1 to %d", least, most, maxTenants)
	}
	return nil
}

func (s *settings) check() error {
	switch {
	case s.layout != platformLayout && s.layout != tenantLayout:
		return fmt.Errorf("-repositories is %q; it may be %s or %s", s.layout, platformLayout, tenantLayout)
	case s.hanging+s.refusing > 0 && s.layout != tenantLayout:
		return errors.New("-hosts-hanging and -hosts-refusing are for -repositories tenant")
	case s.hanging < 0 || s.refusing < 0 || s.hanging+s.refusing > maxTenants:
		return fmt.Errorf("-hosts-hanging and -hosts-refusing may be 0 to %d together", maxTenants)
	case s.suspended != 0 && s.layout != platformLayout:
		return errors.New("-suspended is for -repositories platform")
	case s.suspended < 0 || s.suspended > maxSuspended:
		return fmt.Errorf("-suspended is %d; it may be 0 to %d", s.suspended, maxSuspended)
	case s.pushes < 1:
		return fmt.Errorf("-pushes is %d; it must be at least 1", s.pushes)
	case s.keep && len(s.tenants) > 1:
		return errors.New("-keep is for one size: each size has a cluster of its own")
	}
	return nil
}
