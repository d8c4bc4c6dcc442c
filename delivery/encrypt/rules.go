package encrypt

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// RulesFile is the file at the root of a repository that says for whom files are encrypted.
const RulesFile = ".sops.yaml"

// rule is a rule of the file. Other keys than those of age are only noticed.
type rule struct {
	PathRegex string `json:"path_regex"`
	Age       any    `json:"age"`
	PGP       any    `json:"pgp"`
	KMS       any    `json:"kms"`
	GCP       any    `json:"gcp_kms"`
	Azure     any    `json:"azure_keyvault"`
	Vault     any    `json:"hc_vault_transit_uri"`
	Groups    []any  `json:"key_groups"`
}

// Recipients returns the age recipients that the first rule for a path names; none if no rule is for it.
func Recipients(rules []byte, path string) ([]string, error) {
	var file struct {
		Rules []rule `json:"creation_rules"`
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", RulesFile, err)
	}
	for i, r := range file.Rules {
		matches, err := regexp.MatchString(r.PathRegex, path)
		if err != nil {
			return nil, fmt.Errorf("%s: creation_rules[%d].path_regex: %w", RulesFile, i, err)
		}
		if !matches {
			continue
		}
		if r.PGP != nil || r.KMS != nil || r.GCP != nil || r.Azure != nil || r.Vault != nil || len(r.Groups) > 0 {
			return nil, fmt.Errorf("%s: creation_rules[%d] has keys other than those of age: encrypt the file with the program sops", RulesFile, i)
		}
		return r.recipients(), nil
	}
	return nil, nil
}

// recipients returns the recipients, which are one text with commas or a list.
func (r *rule) recipients() []string {
	var all []string
	add := func(text string) {
		for _, one := range strings.Split(text, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	switch of := r.Age.(type) {
	case string:
		add(of)
	case []any:
		for _, one := range of {
			add(fmt.Sprint(one))
		}
	}
	return all
}
