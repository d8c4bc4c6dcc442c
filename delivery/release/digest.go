package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels on the Secrets in which Helm keeps its revisions. Helm carries a release's labels on: a person's "helm upgrade"
// copies those of the last revision, "helm rollback" those of the one returned to. Only a revision whose number its
// own revisionLabel repeats was written by kubeop.
const (
	digestLabel   = v1alpha1.Group + "/digest"
	holderLabel   = v1alpha1.Group + "/holder"
	attemptLabel  = v1alpha1.Group + "/attempt"
	revisionLabel = v1alpha1.Group + "/release-revision"
	appLabel      = v1alpha1.AppLabel
)

// renderVersion is part of every digest. Raise it when the same input makes other objects than before.
const renderVersion = 1

// digestLength keeps the digest within a label value (63); 160 bits are plenty against accidents.
const digestLength = 40

// digest names the input of a release: equal digests need no action.
func (r *Request) digest() (string, error) {
	if r.Chart.Digest == "" {
		return "", errors.New("the chart has no digest")
	}
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	input, err := json.Marshal(struct {
		Render      int
		Chart, Name string
		Values      map[string]any
	}{renderVersion, r.Chart.Digest, r.Name, values})
	if err != nil {
		return "", renderError(fmt.Errorf("reading the values: %w", err))
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])[:digestLength], nil
}

// labelValue returns the name as a label value; one that is too long or has other signs is hashed.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:digestLength]
}
