// Package definitions applies kubeop's CustomResourceDefinitions, because Helm never upgrades those of a chart. It deletes nothing.
package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Command is the argument with which the operator's program applies the definitions and ends.
const Command = "apply-crds"

// owner is the field manager of the definitions.
const owner = "kubeop-definitions"

// served is how long the API server may take to serve a definition.
const served = time.Minute

// Apply applies the definitions in files by server-side apply, and waits until the API server serves them. A field of the spec that is no
// longer in a file is removed, whoever applied it before. Labels and annotations of others stay.
func Apply(ctx context.Context, c client.Client, files fs.FS, pattern string) error {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return fmt.Errorf("finding the CustomResourceDefinitions: %w", err)
	}
	if len(names) == 0 {
		return fmt.Errorf("finding the CustomResourceDefinitions: no file is called %s", pattern)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if err := apply(ctx, c, definition); err != nil {
			return fmt.Errorf("applying CustomResourceDefinition %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

func apply(ctx context.Context, c client.Client, definition *unstructured.Unstructured) error {
	live := definition.DeepCopy()
	// The API server writes the status of a definition, also between the two requests.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		return takeOver(ctx, c, live)
	})
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(definition), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
		return err == nil && established(live), err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server serves it: %w", err)
	}
	return nil
}

// established reports whether the API server serves the definition.
func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions") // Without a status it is not served.
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// takeOver makes owner the owner of the whole spec. Otherwise server-side apply would keep the fields that Helm or kubectl applied from an
// earlier version.
func takeOver(ctx context.Context, c client.Client, live *unstructured.Unstructured) error {
	before := live.DeepCopy()
	entries, previous, err := split(live.GetManagedFields())
	if err != nil {
		return err
	}
	if len(previous) == 0 {
		return nil
	}
	live.SetManagedFields(entries)
	if err := csaupgrade.UpgradeManagedFields(live, previous, owner); err != nil {
		return fmt.Errorf("taking over its fields: %w", err)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, live, patch); err != nil {
		return fmt.Errorf("taking over its fields: %w", err)
	}
	return nil
}

// split puts the fields of the spec that others own under managers of their own, and returns the names of these.
func split(entries []metav1.ManagedFieldsEntry) (all []metav1.ManagedFieldsEntry, previous sets.Set[string], err error) {
	previous = sets.New[string]()
	for i := range entries {
		e := entries[i]
		fields := map[string]json.RawMessage{}
		if e.FieldsV1 != nil {
			if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
				return nil, nil, fmt.Errorf("reading the fields of %s: %w", e.Manager, err)
			}
		}
		spec, owned := fields["f:spec"]
		if !owned || e.Subresource != "" || e.Manager == owner && e.Operation == metav1.ManagedFieldsOperationApply {
			all = append(all, e)
			continue
		}
		delete(fields, "f:spec")
		name := fmt.Sprint("previous-", i)
		if all, err = appendFields(all, e, fields); err != nil {
			return nil, nil, err
		}
		e.Manager, e.Operation = name, metav1.ManagedFieldsOperationUpdate
		if all, err = appendFields(all, e, map[string]json.RawMessage{"f:spec": spec}); err != nil {
			return nil, nil, err
		}
		previous.Insert(name)
	}
	return all, previous, nil
}

// appendFields appends a copy of the entry with these fields, unless there are none.
func appendFields(to []metav1.ManagedFieldsEntry, e metav1.ManagedFieldsEntry, fields map[string]json.RawMessage) ([]metav1.ManagedFieldsEntry, error) {
	if len(fields) == 0 {
		return to, nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the fields of %s: %w", e.Manager, err)
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return append(to, e), nil
}
