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

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxApps is limited by the names of apps and by the addresses of a cluster's Services.
const maxApps = 9999

// settings are the options of the command line.
type settings struct {
	sizes  []int
	json   string
	driver string
	// kind is the type of app.
	kind  string
	chart string
	// padding is in bytes.
	padding int
	budget  bool
	keep    bool
	phases  []string
	still   time.Duration
	flux    fluxSettings
}

// parseSettings reads the command line. The error flag.ErrHelp means that help was printed.
func parseSettings(args []string, out io.Writer) (settings, error) {
	s := settings{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	n := f.Int("n", 100, "number of apps")
	sizes := f.String("sizes", "", "several numbers of apps, such as 500,2000: a run for each, and how memory grows")
	f.StringVar(&s.json, "json", "", "also write everything that was measured to this file")
	f.StringVar(&s.driver, "driver", "kubeop", "kubeop, on a cluster of its own; or flux, on the cluster of $KUBECONFIG")
	f.StringVar(&s.kind, "type", "helm", "type of the apps: helm, git (manifests in a repository of their own) or raw (beside each app.yaml)")
	f.StringVar(&s.chart, "chart", "oci", "where kubeop finds the chart: oci (the cluster's registry) or folder (beside each app.yaml)")
	values := f.String("values", "0", "size of each app's values, up to 256KiB")
	f.BoolVar(&s.budget, "budget", true, fmt.Sprintf("fail when kubeop costs more than promised, with %d apps and more", budgetsFrom))
	f.BoolVar(&s.keep, "keep", false, "leave cluster and operator running")
	phases := f.String("phases", strings.Join(phaseNames, ","), "the phases to go through; always in this order, and install always")
	f.DurationVar(&s.still, "quiet", 3*time.Second, "how long there are no requests before a phase counts as over")
	s.flux.flags(f)
	if err := f.Parse(args); err != nil {
		return s, err
	}
	err := errors.Join(s.setSizes(*n, *sizes), s.setPadding(*values), s.setPhases(*phases), s.check())
	if f.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("what is %q? There are only flags", f.Arg(0)))
	}
	return s, err
}

func (s *settings) setSizes(n int, list string) error {
	s.sizes = []int{n}
	if list != "" {
		s.sizes = nil
		for size := range strings.SplitSeq(list, ",") {
			parsed, err := strconv.Atoi(size)
			if err != nil {
				return fmt.Errorf("-sizes: %q is no number", size)
			}
			s.sizes = append(s.sizes, parsed)
		}
	}
	for _, size := range s.sizes {
		if size < 1 || size > maxApps {
			return fmt.Errorf("the number of apps is %d; it may be 1 to %d", size, maxApps)
		}
	}
	slices.Sort(s.sizes)
	return nil
}

func (s *settings) setPadding(size string) error {
	parsed, err := resource.ParseQuantity(strings.TrimSuffix(size, "B"))
	if err != nil {
		return fmt.Errorf("-values: %q is no size; write it as 6KiB", size)
	}
	s.padding = int(parsed.Value())
	if s.padding < 0 || s.padding > 256<<10 {
		return fmt.Errorf("-values is %s; it may be up to 256KiB", size)
	}
	return nil
}

func (s *settings) setPhases(list string) error {
	s.phases = strings.Split(list, ",")
	for _, name := range s.phases {
		if !slices.Contains(phaseNames, name) {
			return fmt.Errorf("-phases: %q is none; there are %s", name, strings.Join(phaseNames, ", "))
		}
	}
	s.phases = append(s.phases, install)
	return nil
}

func (s *settings) check() error {
	if s.chart != "oci" && s.chart != "folder" {
		return fmt.Errorf("-chart is %q; it may be oci or folder", s.chart)
	}
	if _, ok := appTypes[s.kind]; !ok {
		return fmt.Errorf("-type is %q; it may be helm, git or raw", s.kind)
	}
	if s.kind != "helm" && (s.driver != "kubeop" || s.padding > 0 || s.chart != "oci") {
		return errors.New("-driver, -values and -chart are for -type helm")
	}
	if s.keep && len(s.sizes) > 1 {
		return errors.New("-keep is for one size: each size has a cluster of its own")
	}
	switch s.driver {
	case "kubeop":
		return nil
	case "flux":
		return s.flux.check()
	}
	return fmt.Errorf("-driver is %q; it may be kubeop or flux", s.driver)
}
