package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Explained is an error that says what to do about it already.
type Explained struct {
	Text string
	Err  error
	// MayPass: the same may succeed a little later.
	MayPass bool
}

// Error implements error.
func (e *Explained) Error() string { return e.Text }

// Unwrap returns what is explained.
func (e *Explained) Unwrap() error { return e.Err }

var errUnconfigured = errors.New("no cluster is configured: set KUBECONFIG, or give --kubeconfig, as for kubectl")

// Explain returns an error of a request with what to do about it, on one line.
func (c *Connection) Explain(err error) error {
	var status apierrors.APIStatus
	var request *url.Error
	var explained *Explained
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.As(err, &explained):
		return err
	case clientcmd.IsEmptyConfig(err):
		return errUnconfigured
	case missingKinds(err):
		return fmt.Errorf("%s has no kubeop: its kinds of %s are missing. An administrator installs its chart, or choose another cluster with --context", c.server(), v1alpha1.Group)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept your credentials (context %q): log in again", c.server(), c.context())
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		return fmt.Errorf("%w. %s", err, c.whoAllows(status))
	case apierrors.IsNotFound(err) && errors.As(err, &status):
		return c.notFound(err, status)
	case errors.As(err, &request):
		return c.unreachable(request)
	}
	return err
}

// missingKinds reports whether the cluster does not serve kubeop's kinds.
func missingKinds(err error) bool {
	var kind *meta.NoKindMatchError
	return errors.As(err, &kind) && kind.GroupKind.Group == v1alpha1.Group
}

// whoAllows says who gives the right that a refused request needs.
func (c *Connection) whoAllows(status apierrors.APIStatus) string {
	tenant, details := c.Within().Tenant, status.Status().Details
	if details == nil || details.Group != v1alpha1.Group {
		details = &metav1.StatusDetails{Name: "an object"}
	}
	ofTenants := details.Kind == Tenant.Plural || details.Kind == Repository.Plural
	switch ofAll := details.Kind == Policy.Plural || details.Kind == Registry.Plural || details.Kind == PriceList.Plural || details.Kind == Cluster.Plural; {
	case tenant == v1alpha1.PlatformTenant || ofAll || details.Kind == Repository.Plural && details.Name == v1alpha1.PlatformRepository:
		return "An administrator of the cluster can allow it"
	case details.Name == "" && (tenant == "" || ofTenants || c.All):
		return "Only administrators can list the objects of all tenants: name yours with --tenant"
	case tenant == "":
		tenant = "<tenant>"
	}
	return fmt.Sprintf("spec.owners in tenants/%s/tenant.yaml of the platform repository gives people their roles", tenant)
}

func (c *Connection) notFound(err error, status apierrors.APIStatus) error {
	details := status.Status().Details
	if details == nil || details.Group != v1alpha1.Group {
		return err
	}
	if details.Name == "" {
		return fmt.Errorf("%s has no kubeop: it does not serve %s.%s", c.server(), details.Kind, details.Group)
	}
	list := "kubeop get " + details.Kind
	if tenant := c.Within().Tenant; tenant != "" && details.Kind != Repository.Plural && details.Kind != Tenant.Plural && details.Kind != Policy.Plural {
		list += " --tenant " + tenant
	}
	return fmt.Errorf("%w; `%s` shows what there is", err, list)
}

func (c *Connection) unreachable(request *url.Error) error {
	if c.unconfigured() {
		return errUnconfigured
	}
	var unknown x509.UnknownAuthorityError
	var name *net.DNSError
	why := request.Err
	switch {
	case errors.As(request, &unknown):
		why = fmt.Errorf("its certificate is not of the authority in the kubeconfig: %w", request.Err)
	case errors.As(request, &name):
		why = fmt.Errorf("no address is known for %s: %w", name.Name, request.Err)
	case request.Timeout():
		why = fmt.Errorf("it did not answer in time: %w", request.Err)
	}
	return fmt.Errorf("%s cannot be reached (context %q): %w", c.server(), c.context(), why)
}

// unconfigured reports whether no kubeconfig names a cluster. Requests then go to a default that hardly anybody means.
func (c *Connection) unconfigured() bool {
	raw, err := c.Flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0
}

// server names the cluster.
func (c *Connection) server() string {
	config, err := c.Flags.ToRESTConfig()
	if err != nil {
		return "the cluster"
	}
	return "the cluster at " + config.Host
}

// context is the context of the kubeconfig.
func (c *Connection) context() string {
	if *c.Flags.Context != "" {
		return *c.Flags.Context
	}
	raw, err := c.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}
