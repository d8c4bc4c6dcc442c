//go:build e2e

package accidents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// reader reads the text of a status, an event or a kubectl command.
type reader func(*subject) (string, error)

func refusal(s *subject) (string, error) { return s.refusal, nil }

func repository(s *subject) (string, error) {
	return status(s, &v1alpha1.Repository{}, "", s.repository())
}

func platformRepository(s *subject) (string, error) {
	return status(s, &v1alpha1.Repository{}, "", v1alpha1.PlatformRepository)
}

func tenantStatus(s *subject) (string, error) { return status(s, &v1alpha1.Tenant{}, "", s.tenant) }

func project(s *subject) (string, error) {
	return status(s, &v1alpha1.Project{}, v1alpha1.HomeNamespace(s.tenant), "shop")
}

func app(name string) reader { return appIn("shop", name) }

func appIn(project, name string) reader {
	return func(s *subject) (string, error) {
		return status(s, &v1alpha1.App{}, v1alpha1.ProjectNamespace(s.tenant, project), name)
	}
}

// each joins the texts of several readers.
func each(readers ...reader) reader {
	return func(s *subject) (string, error) {
		var all []string
		for _, read := range readers {
			text, err := read(s)
			if err != nil {
				return "", err
			}
			all = append(all, text)
		}
		return strings.Join(all, "\n"), nil
	}
}

// events are the events of the tenant's objects since the accident began.
func events(s *subject) (string, error) {
	list := &eventsv1.EventList{}
	if err := platform.Client.List(s.t.Context(), list); err != nil {
		return "", err
	}
	var out strings.Builder
	home := v1alpha1.HomeNamespace(s.tenant)
	for _, e := range list.Items {
		last := e.EventTime.Time
		if e.Series != nil {
			last = e.Series.LastObservedTime.Time
		}
		of := e.Regarding
		mine := of.Namespace == home || of.Namespace == s.namespace() || of.Namespace == "" && slices.Contains([]string{s.tenant, home, s.namespace()}, of.Name)
		if mine && last.After(s.began) {
			fmt.Fprintf(&out, "%s %s %s/%s: %s\n", e.Type, e.Reason, of.Kind, of.Name, e.Note)
		}
	}
	return out.String(), nil
}

// output reads the output of kubectl.
func output(args string) reader {
	return func(s *subject) (string, error) { return platform.Kubectl(s.t.Context(), words(s.expand(args))...) }
}

// status is the status of an object as JSON, without HTML escapes. The inventory is left out because it names every object.
func status(s *subject, o client.Object, namespace, name string) (string, error) {
	if err := platform.Client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		return "", err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var parts struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return "", err
	}
	delete(parts.Status, "inventory")
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(parts.Status)
	return out.String(), err
}

// mustReport waits until the text that read returns contains all words.
func (s *subject) mustReport(read reader, wanted []string) {
	s.t.Helper()
	s.until("the status reports it", func(context.Context) error {
		text, err := read(s)
		if err != nil {
			return err
		}
		var missing []error
		for _, want := range wanted {
			if want = s.expand(want); !strings.Contains(text, want) {
				missing = append(missing, fmt.Errorf("it does not contain %q", want))
			}
		}
		if len(missing) > 0 {
			return errors.Join(append(missing, fmt.Errorf("it is %s", text))...)
		}
		return nil
	})
}

// untilText waits until judge accepts the text that read returns.
func (s *subject) untilText(what string, read reader, judge func(string) bool) {
	s.t.Helper()
	s.until(what, func(context.Context) error {
		text, err := read(s)
		if err == nil && !judge(text) {
			err = fmt.Errorf("it is %s", text)
		}
		return err
	})
}
