package server_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// description is the part of OpenAPI that is used here.
type description struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct {
				Schema map[string]any `json:"schema"`
			} `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

func described(tb testing.TB, h *harness) *description {
	tb.Helper()
	var d description
	h.get("/openapi.json", &d)
	require.Equal(tb, "3.1.0", d.OpenAPI)
	return &d
}

// TestEveryRouteIsDescribed compares with the table of routes in the source.
func TestEveryRouteIsDescribed(t *testing.T) {
	source, err := os.ReadFile("routes.go")
	require.NoError(t, err)
	var routes []string
	for _, m := range regexp.MustCompile(`\{"([A-Z]+)", (component \+ )?(component|"[^"]*"),`).FindAllStringSubmatch(string(source), -1) {
		path := strings.Trim(m[3], `"`)
		if m[2] != "" || path == "component" {
			path = "/v1/groups/{group}/components/{component}" + strings.TrimPrefix(path, "component")
		}
		routes = append(routes, m[1]+" "+strings.TrimSuffix(path, "{$}"))
	}
	require.Greater(t, len(routes), 15)
	h := start(t, options{})
	var documented []string
	for path, methods := range described(t, h).Paths {
		for method := range methods {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	require.Equal(t, routes, documented)
}

func TestAnswersAreAsDescribed(t *testing.T) {
	h := start(t, options{})
	d := described(t, h)
	h.say(grantS1, confirmS1, `{"kind":"join","group":"flink","candidate":"jm-1","incarnation":"1","components":["rest"]}`,
		`{"kind":"join","group":"flink","candidate":"jm-2","incarnation":"1","components":["rest"]}`,
		`{"kind":"health","group":"flink","candidate":"jm-2","incarnation":"1","check":"disk","status":"fail","reason":"full","run":1}`,
		strings.Replace(confirmS1, "S1", "S9", 1))
	const component = "/v1/groups/{group}/components/{component}"
	const candidate = "/v1/groups/{group}/candidates/{candidate}/alive"
	for _, c := range []struct {
		method, path, target, body string
		status                     int
	}{
		{"POST", "/v1/events", "/v1/events?wait=applied", grantS1, 201},
		{"POST", "/v1/events", "/v1/events", "[" + grantS1 + "]", 201},
		{"POST", "/v1/events", "/v1/events", "[{}]", 400},
		{"GET", "/v1/events", "/v1/events", "", 200},
		{"GET", "/v1/events", "/v1/events?limit=no", "", 400},
		{"GET", "/v1/events/{sequence}", "/v1/events/2", "", 200},
		{"GET", "/v1/groups", "/v1/groups", "", 200},
		{"GET", "/v1/groups/{group}", "/v1/groups/flink", "", 200},
		{"GET", "/v1/groups/{group}", "/v1/groups/none", "", 404},
		{"GET", "/v1/groups/{group}/candidates/{candidate}", "/v1/groups/flink/candidates/jm-1", "", 200},
		{"GET", "/v1/groups/{group}/candidates/{candidate}", "/v1/groups/none/candidates/nobody", "", 200},
		{"GET", "/v1/groups/{group}/candidates/{candidate}/watch", "/v1/groups/flink/candidates/jm-1/watch?from=1", "", 400},
		{"GET", component, "/v1/groups/flink/components/rest", "", 200},
		{"GET", "/v1/diff", "/v1/diff", "", 200},
		{"GET", "/v1/diff", "/v1/diff?component=rest", "", 400},
		{"GET", component + "/leader", "/v1/groups/flink/components/rest/leader", "", 200},
		{"GET", component + "/leader", "/v1/groups/flink/components/rest/leader?candidate=x", "", 503},
		{"GET", component + "/history", "/v1/groups/flink/components/rest/history", "", 200},
		{"PUT", candidate, "/v1/groups/flink/candidates/jm-1/alive", heartbeat("1", 0), 200},
		{"PUT", candidate, "/v1/groups/flink/candidates/jm-1/alive", heartbeat("2", 0), 409},
		{"PUT", candidate, "/v1/groups/flink/candidates/jm-1/alive", "{}", 400},
		{"POST", component + "/transfer", "/v1/groups/flink/components/rest/transfer?dryRun=true", `{"actor":"a","reason":"r"}`, 200},
		{"POST", component + "/transfer", "/v1/groups/flink/components/rest/transfer", `{"actor":"a","reason":"r"}`, 409},
		{"POST", component + "/transfer", "/v1/groups/flink/components/rest/transfer", `{"to":"jm-2","force":true,"actor":"a","reason":"r"}`, 201},
		{"POST", "/v1/groups/{group}/pause", "/v1/groups/flink/pause", `{"actor":"a"}`, 400},
		{"POST", "/v1/groups/{group}/pause", "/v1/groups/flink/pause", `{"until":"2100-01-01T00:00:00Z","actor":"a","reason":"r"}`, 201},
		{"POST", "/v1/groups/{group}/resume", "/v1/groups/flink/resume?wait=done", `{"actor":"a","reason":"r"}`, 201},
		{"POST", "/v1/groups/{group}/exclude", "/v1/groups/flink/exclude", `{"candidate":"jm-2","actor":"a","reason":"r"}`, 201},
		{"GET", component, "/v1/groups/flink/components/rest", "", 200},
		{"GET", "/v1/groups", "/v1/groups", "", 200},
		{"POST", "/v1/groups/{group}/include", "/v1/groups/flink/include", `{"candidate":"jm-2","actor":"a","reason":"r"}`, 201},
		{"POST", "/-/reload", "/-/reload", "", 409},
	} {
		a := h.do(c.method, c.target, "", c.body)
		require.Equal(t, c.status, a.status, a.body)
		responses := d.Paths[c.path][strings.ToLower(c.method)].Responses
		response, ok := responses[strconv.Itoa(a.status)]
		if !ok {
			response = responses["default"]
		}
		media, ok := response.Content[a.header.Get("Content-Type")]
		require.True(t, ok, "%s %s answers %s", c.method, c.target, a.header.Get("Content-Type"))
		var value any
		require.NoError(t, json.Unmarshal([]byte(a.body), &value))
		require.NoError(t, d.conforms(media.Schema, value, c.target), a.body)
	}
}

// conforms checks a value against the part of JSON Schema that the description uses.
func (d *description) conforms(schema map[string]any, value any, at string) error {
	if ref, ok := schema["$ref"].(string); ok {
		return d.conforms(d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], value, at)
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		var last error
		for _, one := range choices {
			if last = d.conforms(one.(map[string]any), value, at); last == nil {
				return nil
			}
		}
		return last
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, value) {
		return fmt.Errorf("%s: %v is none of %v", at, value, words)
	}
	switch want := schema["type"]; v := value.(type) {
	case map[string]any:
		if want != "object" && want != nil {
			return fmt.Errorf("%s: is an object, not a %v", at, want)
		}
		return d.conformsObject(schema, v, at)
	case []any:
		if want != "array" {
			return fmt.Errorf("%s: is an array, not a %v", at, want)
		}
		for i, element := range v {
			if err := d.conforms(schema["items"].(map[string]any), element, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case string:
		if want != "string" {
			return fmt.Errorf("%s: is a text, not a %v", at, want)
		}
	case float64:
		if want != "integer" && want != "number" || want == "integer" && v != float64(int64(v)) {
			return fmt.Errorf("%s: is a number, not a %v", at, want)
		}
	case bool:
		if want != "boolean" {
			return fmt.Errorf("%s: is a boolean, not a %v", at, want)
		}
	default:
		return fmt.Errorf("%s: is null", at)
	}
	return nil
}

func (d *description) conformsObject(schema, value map[string]any, at string) error {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return fmt.Errorf("%s: %v is missing", at, name)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, member := range value {
		property, known := properties[name].(map[string]any)
		if !known && schema["additionalProperties"] == false {
			return fmt.Errorf("%s: %s is not described", at, name)
		}
		if !known {
			continue
		}
		if err := d.conforms(property, member, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func TestUnknownMethods(t *testing.T) {
	h := start(t, options{})
	a := h.do("DELETE", "/v1/events", "", "")
	require.Equal(t, http.StatusMethodNotAllowed, a.status)
	require.Contains(t, a.header.Get("Allow"), "POST")
	problemOf(t, a)
}
