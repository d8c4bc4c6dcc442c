package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/crd"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// maxEstablishing is how long new CustomResourceDefinitions may take to be served.
const maxEstablishing = time.Minute

// InstallCRDs installs the CustomResourceDefinitions in the chart's crds folders, with the user's rights, before anything is rendered:
// templates look up which kinds exist, and the chart may have objects of these kinds. Existing definitions are updated or kept, as the
// policy says; "" means CreateReplace. The chart must be a resolved one, without the definitions of disabled subcharts. If the user lacks
// the right to write a definition, the error is a *NotAllowed.
func (c *Client) InstallCRDs(ctx context.Context, of *chart.Chart, policy v1alpha1.CRDsPolicy) error {
	if policy == v1alpha1.CRDsSkip {
		return nil
	}
	crds := of.CRDObjects()
	if len(crds) == 0 {
		return nil
	}
	changes, err := c.definitions(crds, policy)
	if err != nil || len(changes) == 0 {
		return err
	}
	var fresh kube.ResourceList
	for _, d := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.apply(); err != nil {
			return c.Faults.Note(forbidden(err, changes))
		}
		if d.live != nil {
			fresh = append(fresh, d.info)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := c.established(fresh); err != nil {
		return err
	}
	return c.discovered(fresh)
}

// discovered waits until discovery returns the new kinds, which takes some time after they are served.
func (c *Client) discovered(list kube.ResourceList) error {
	left := list
	err := c.await(maxEstablishing, nil, func() (bool, error) {
		c.kinds.Refresh()
		for len(left) > 0 {
			u, err := unstructuredOf(left[0].Object)
			if err != nil {
				return false, err
			}
			if known, err := c.kinds.knows(u); !known || err != nil {
				return false, err
			}
			left = left[1:]
		}
		return true, nil
	})
	if errors.Is(err, errTimeUp) {
		err = fmt.Errorf("%s: discovery did not show its kind within %s", nameOf(left[0]), maxEstablishing)
	}
	return c.Faults.Note(err)
}

// definition is a CustomResourceDefinition to be installed.
type definition struct {
	change
	file    string
	replace bool
}

// definitions parses the files of CRDs. Other objects in them are refused, because they would bypass admission.
func (c *Client) definitions(crds []chart.CRD, policy v1alpha1.CRDsPolicy) ([]*definition, error) {
	var out []*definition
	for _, file := range crds {
		docs, err := manifest.Parse(string(file.File.Data))
		if err != nil {
			return nil, fault.Render(fmt.Errorf("%s: %w", file.Filename, err))
		}
		for _, u := range manifest.Objects(docs) {
			if !crd.Is(u) {
				return nil, &fault.NotAllowed{Err: fmt.Errorf("%s/%s in %s is no CustomResourceDefinition; it belongs into templates/", u.GetKind(), u.GetName(), file.Filename)}
			}
			if group := crd.Defines(u).Group; crd.Protected(group) && (group == v1alpha1.Group || !c.Release.Platform) {
				return nil, &fault.NotAllowed{Err: fmt.Errorf("%s/%s in %s belongs to the API group %s, which no app may define", u.GetKind(), u.GetName(), file.Filename, group)}
			}
			info, err := c.info(u)
			if err != nil {
				return nil, c.Faults.Note(fmt.Errorf("%s: %w", file.Filename, err))
			}
			out = append(out, &definition{
				change:  change{client: c, info: info, want: u},
				file:    file.Filename,
				replace: policy != v1alpha1.CRDsCreate,
			})
		}
	}
	return out, nil
}

// apply creates or changes the definition, and adds the release's annotations, as Helm does for objects of templates. An existing
// definition is merged, so that for example a webhook keeps the certificate that a controller injected. Versions are a list without merge
// keys, so the chart's list replaces them.
func (d *definition) apply() error {
	live, err := d.get()
	switch {
	case apierrors.IsNotFound(err):
		d.client.Release.Claim(d.want)
		o, err := helper(d.info).Create("", true, d.want)
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: it was created by someone else just now: %w", d.file, apierrors.NewConflict(d.info.Mapping.Resource.GroupResource(), d.info.Name, err))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
		return d.answered(o)
	case err != nil:
		return fmt.Errorf("%s: %w", d.file, err)
	case !d.replace:
		return nil
	case !d.client.mayTake(live):
		return d.leave(live)
	}
	d.client.Release.Claim(d.want)
	if err := d.merge(d.want, live); err != nil {
		return fmt.Errorf("%s: %w", d.file, err)
	}
	return nil
}

// leave refuses to change a definition that someone else created, because that would change it for everyone with objects of the kind. If
// the chart's definition is the same, there is nothing to change.
func (d *definition) leave(live *unstructured.Unstructured) error {
	differs, err := threeWay(d.want, d.want, live)
	if err != nil {
		return fmt.Errorf("%s: comparing: %w", d.file, err)
	}
	if differs.empty() {
		return nil
	}
	return &fault.NotAllowed{Err: fmt.Errorf("%s (%s) exists, does not belong to this release and differs from the chart's: set spec.helm.crds: Create to keep it; %s",
		nameOf(d.info), d.file, handOver(live, d.client.Release.Release))}
}

// forbidden turns a refusal for lack of rights into an error that says what the tenant can do.
func forbidden(err error, all []*definition) error {
	if !apierrors.IsForbidden(err) || cause.IsEnvironment(err) {
		return err
	}
	var names []string
	for _, d := range all {
		names = append(names, fmt.Sprintf("%s (%s)", nameOf(d.info), d.file))
	}
	slices.Sort(names)
	return &fault.NotAllowed{Err: fmt.Errorf("the chart brings %s, which the whole cluster shares and the project's deployer may not write: "+
		"an administrator of the cluster installs them and the app sets crds: Skip, or lists CustomResourceDefinition.apiextensions.k8s.io in %s, "+
		"or delivers the app from platform/ there", strings.Join(names, ", "), command.OfTenant("spec.clusterKinds"))}
}

// established waits until the API server serves the kinds.
func (c *Client) established(list kube.ResourceList) error {
	left := list
	err := c.await(maxEstablishing, nil, func() (bool, error) {
		for len(left) > 0 {
			o, err := helper(left[0]).Get("", left[0].Name)
			if err != nil {
				return false, named(left[0], err)
			}
			u, err := unstructuredOf(o)
			if err != nil || !crd.Established(u) {
				return false, err
			}
			left = left[1:]
		}
		return true, nil
	})
	if errors.Is(err, errTimeUp) {
		return c.Faults.Note(fmt.Errorf("%s: the API server did not serve its kind within %s", nameOf(left[0]), maxEstablishing))
	}
	return c.Faults.Note(err)
}
