package plan

import (
	"errors"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// DryRun returns a connection on which no request changes the cluster. itself: requests impersonate the project's deployer; otherwise they are
// made as who the configuration is of, who may not do that.
func DryRun(config *rest.Config, itself bool) *rest.Config {
	config = rest.CopyConfig(config)
	as := config.Impersonate
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRun{next, as, itself} })
	config.QPS = -1
	return config
}

// dryRun lets no request change the cluster: each write is sent as a dry run, and a deletion is not sent at all.
type dryRun struct {
	next http.RoundTripper
	// as is whom the person impersonates. With itself, the requests impersonate the project's deployer instead.
	as     rest.ImpersonationConfig
	itself bool
}

var errNotDeleted = errors.New("a plan deletes nothing")

// RoundTrip implements http.RoundTripper.
func (d dryRun) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if !d.itself {
		d.asThePerson(request.Header)
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	case http.MethodDelete:
		return nil, errNotDeleted
	default:
		query := request.URL.Query()
		query.Set("dryRun", "All")
		request.URL.RawQuery = query.Encode()
	}
	return d.next.RoundTrip(request)
}

// asThePerson replaces the impersonation of the deployer by that of the person.
func (d dryRun) asThePerson(header http.Header) {
	header.Del(transport.ImpersonateUserHeader)
	for name, values := range map[string][]string{
		transport.ImpersonateUserHeader: {d.as.UserName}, transport.ImpersonateUIDHeader: {d.as.UID}, transport.ImpersonateGroupHeader: d.as.Groups,
	} {
		for _, value := range values {
			if value != "" {
				header.Add(name, value)
			}
		}
	}
	for key, values := range d.as.Extra {
		for _, value := range values {
			header.Add(transport.ImpersonateUserExtraHeaderPrefix+url.PathEscape(key), value)
		}
	}
}
