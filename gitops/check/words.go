package check

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

// inWords is for the message about an invalid file: it describes in words what each pattern of the CustomResourceDefinitions requires,
// because most people cannot read a pattern.
var inWords = byPattern([][2]string{
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, "must be <project>/<account>, a project of the tenant and a service account in it, such as db/patroni"},
	{`^[a-z0-9*][-a-z0-9*]*/[a-z0-9*][-a-z0-9*]*$`, "must be a pattern <project>/<app> such as shop/* or */web"},
	{`^https?://[^\s]+$`, "must begin with https:// or http://"},
	{`^[A-Za-z0-9]([A-Za-z0-9/._ -]*[A-Za-z0-9])?$`, "must be a name such as kubeop/acme: letters and digits, and between them also slashes, dots, dashes, underscores and spaces"},
	{`^(https?|ssh)://[^\s]+$`, "must begin with https://, http:// or ssh:// (write git@host:a/b as ssh://git@host/a/b)"},
	{`^(https?|oci)://[^\s]+$`, "must begin with https://, http:// or oci://"},
	{`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`, "must be a duration such as 30s or 5m"},
	{`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`, "must be a quantity such as 100m or 256Mi"},
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`, "must be a host name such as web.example.org, in lowercase and without port"},
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, "must be a name of lowercase letters, digits, dashes and dots, such as tenants-high"},
	{`^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$`, "must be a port name such as http: at most 15 lowercase letters, digits and dashes"},
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, "must be lowercase letters, digits and dashes, such as web-1"},
	{`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$`, "must be the name of a chart, such as nginx; the rest of its URL belongs in repository"},
	{`^[A-Z][A-Za-z0-9]*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, "must be a kind and its API group, such as IngressClass.networking.k8s.io"},
	{`^oci://[^\s]+$`, "must begin with oci://, without a tag"},
	{`^/`, "must begin with /"},
	{`^[A-Za-z0-9._/*?-]+$`, "must be a pattern of branch names such as feature/*: letters, digits, dots, dashes, underscores and slashes, with * and ?"},
	{`^[^\s]+$`, "must not hold spaces"},
	{`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`, "must be a name, which may have a domain before it, such as pool or example.org/pool"},
	{`^(\*|localhost|[a-z0-9*.-]*[.:*][a-z0-9*.:-]*)(/[a-z0-9*._-]+)*$`, "must be a registry, or a repository with its registry, such as registry.example.com or docker.io/library/nginx, in lowercase and without tag"},
	{`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`, "must be the value of a label: letters, digits, and between them dashes, dots and underscores"},
	{`^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$`, "must be the name of a CSI driver, such as secrets-store.csi.k8s.io"},
	{`^([A-Z][A-Za-z0-9]*|(\*|[A-Z][A-Za-z0-9]*)\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`, "must be a kind, such as Secret or CronJob.batch, or all kinds of a group, such as *.apps"},
	{`^([-A-Za-z0-9._*]+/)?[-A-Za-z0-9._*]+$`, "must be a pattern of names of labels or annotations, such as team or *.example.com/*"},
	{`^((https?|ssh)://)?[a-z0-9*.-]+(:[0-9]+)?(/[A-Za-z0-9*._~+-]+)*$`, "must be a host, or a path at a host, such as git.example.com/acme or https://charts.example.com, with the host in lowercase"},
	{`^[a-z0-9]([-a-z0-9]{0,33}[a-z0-9])?$`, "must be the name of a project of the same tenant, such as shop; projects of other tenants can have no connections to it"},
	{`^(latest|v1\.(0|[1-9][0-9]{0,2}))$`, "must be latest or a minor version of Kubernetes, such as v1.34"},
	{`^\s*-----BEGIN [A-Z ]*PUBLIC KEY-----\s`, "must be a public key in PEM, as cosign.pub has it"},
	{`^sha256:[0-9a-f]{64}$`, "must be a digest, as sha256: and 64 hexadecimal digits"},
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$`, "must be the host of a registry in lowercase, such as ghcr.io or registry.example.com:5000"},

	// A PriceList.
	{`^[A-Z]{3}$`, "must be a currency of ISO 4217 in upper case, such as EUR"},
	{`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`, "must be a day as YYYY-MM-DD, such as 2026-01-31"},
	{`^[0-9]{1,12}(\.[0-9]{1,12})?$`, "must be a number in quotes such as \"0.025\", not negative, with at most 12 digits before the point and 12 after it"},
	{`^[a-z]([-a-z0-9./]*[a-z0-9])?$`, "must be the name of a meter, such as cpu.requested or storage/fast"},
	{`^([0-9]{1,2}(\.[0-9]{1,12})?|100(\.0{1,12})?)$`, "must be a number in quotes from \"0\" to \"100\", such as \"7.5\""},
	{`^\S(.*\S)?$`, "must be a text on one line, which neither begins nor ends with a space"},

	// The mirror of a Registry.
	{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`, "must be the host of a registry in lowercase, with a path if the mirror has one, such as mirror.example.com/dockerhub"},
})

// byPattern makes a map of patterns, each with its words. It panics if a pattern is there twice.
func byPattern(all [][2]string) map[string]string {
	words := make(map[string]string, len(all))
	for _, one := range all {
		if _, twice := words[one[0]]; twice {
			panic("two texts for the pattern " + one[0])
		}
		words[one[0]] = one[1]
	}
	return words
}

// grammar corrects the grammar of the validators' messages about lengths.
var grammar = strings.NewReplacer(
	"must be at least 1 chars long", "must not be empty",
	"must have at least 1 items", "must not be empty",
	"must have at least 1 properties", "must not be empty",
	"chars long", "characters long",
)

// wantedPattern matches the validators' message about a pattern.
var wantedPattern = regexp.MustCompile(`^must match '(.*)'$`)

// choices are added to the message about a required field of which a new author does not know the values.
var choices = map[string]string{"spec.type": ": write one of Image, Git, Helm, Raw"}

// instead is added to the message about a value of the wrong type, where most people expect that the value alone is enough.
var instead = map[string]string{"spec.egress.ports[]": "; write - port: 443"}

// index matches the place of an item in a list.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// schemaCode returns the code of a schema error.
func schemaCode(kind field.ErrorType) code.Code {
	switch kind {
	case field.ErrorTypeRequired:
		return code.RequiredField
	case field.ErrorTypeNotSupported:
		return code.UnknownValue
	case field.ErrorTypeDuplicate:
		return code.DuplicateItem
	case field.ErrorTypeTypeInvalid:
		return code.WrongType
	}
	return code.InvalidValue
}

// schemaMessage formats a schema error as "field: what is wrong", without the repetitions of the field and the value in the validators'
// text.
func schemaMessage(err *field.Error) string {
	switch err.Type {
	case field.ErrorTypeRequired:
		return err.Field + " is required" + choices[err.Field]
	case field.ErrorTypeNotSupported:
		detail := strings.ReplaceAll(strings.TrimPrefix(err.Detail, "supported values: "), `"`, "")
		return fmt.Sprintf("%s: %s is not one of %s", err.Field, document.Show(err.BadValue), detail)
	case field.ErrorTypeDuplicate:
		return fmt.Sprintf("%s: %s is there twice: keep one", err.Field, document.Show(err.BadValue))
	}
	detail := strings.TrimPrefix(err.Detail, err.Field)
	detail = strings.TrimPrefix(strings.TrimSpace(detail), "in body ")
	detail = grammar.Replace(strings.Replace(detail, "should", "must", 1))
	if m := wantedPattern.FindStringSubmatch(detail); m != nil {
		detail = wanted(m[1], err)
	}
	if want, got, ok := strings.Cut(detail, ": "); ok && err.Type == field.ErrorTypeTypeInvalid {
		return fmt.Sprintf("%s: %s, not %s%s", err.Field, want, strings.Trim(got, `"`), instead[index.ReplaceAllString(err.Field, "[]")])
	}
	return fmt.Sprintf("%s: %s", err.Field, detail)
}

// wanted describes the pattern that a value does not match.
func wanted(pattern string, err *field.Error) string {
	words, known := inWords[pattern]
	text, _ := err.BadValue.(string)
	switch {
	case !known:
		return fmt.Sprintf("must match '%s'", pattern)
	case strings.Contains(pattern, `[^\s]`) && len(strings.Fields(text)) > 1:
		return "must not hold spaces"
	}
	return words
}
