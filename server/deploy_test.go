package server_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/leadership-journal/journald/server"
)

// metricNames is a registerer that only notes what /metrics can have: the labels of each name.
type metricNames map[string][]string

func (m metricNames) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	_, isHistogram := c.(prometheus.Histogram)
	if _, isVector := c.(*prometheus.HistogramVec); isVector {
		isHistogram = true
	}
	for d := range all {
		text := regexp.MustCompile(`^Desc{fqName: "([^"]+)".*variableLabels: {([^}]*)}}$`).FindStringSubmatch(d.String())
		if text == nil {
			return fmt.Errorf("%s can't be read", d)
		}
		labels := strings.FieldsFunc(text[2], func(r rune) bool { return r == ',' || r == ' ' })
		if m[text[1]] = labels; isHistogram {
			m[text[1]+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	return nil
}

func (m metricNames) MustRegister(...prometheus.Collector) {}
func (m metricNames) Unregister(prometheus.Collector) bool { return false }

// knownMetrics are all that /metrics can have.
func knownMetrics(t *testing.T) metricNames {
	t.Helper()
	known := metricNames{}
	_, err := server.NewMetrics(known, server.MetricsOptions{MaxSeries: 1})
	require.NoError(t, err)
	require.Contains(t, known, "journald_alerts_active")
	require.Contains(t, known, "journald_publish_lag_seconds_bucket")
	return known
}

// judge holds that an expression names metrics, and labels of theirs, that there are. instance is what Prometheus adds.
func (m metricNames) judge(t *testing.T, expr string) {
	t.Helper()
	names := regexp.MustCompile(`\b(?:journald|leader_election)_\w+`).FindAllString(expr, -1)
	require.NotEmpty(t, names, expr)
	labels := []string{"instance"}
	for _, name := range names {
		require.Contains(t, m, name, expr)
		labels = append(labels, m[name]...)
	}
	for _, by := range regexp.MustCompile(`\bby \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		require.Subset(t, labels, strings.Split(by[1], ", "), expr)
	}
	for _, match := range regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`).FindAllStringSubmatch(expr, -1) {
		require.Contains(t, labels, match[1], expr)
	}
	require.Equal(t, strings.Count(expr, "("), strings.Count(expr, ")"), expr)
	require.Equal(t, strings.Count(expr, "{"), strings.Count(expr, "}"), expr)
}

// alertNames are those that the view raises.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../view/decide.go")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(source), "// The names of alerts.\nconst (")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "\n)")
	for _, m := range regexp.MustCompile(`= "(\w+)"`).FindAllStringSubmatch(block, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestAlertRules(t *testing.T) {
	text, err := os.ReadFile("../deploy/prometheus/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &file))
	known, own := knownMetrics(t), alertNames(t)
	require.Len(t, own, 10)
	var rules []string
	for _, r := range file.Groups[0].Rules {
		rules = append(rules, r.Alert)
		known.judge(t, r.Expr)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"])
		require.NotEmpty(t, r.Annotations["summary"])
		require.NotEmpty(t, r.Annotations["description"])
		raised := regexp.MustCompile(`journald_alerts_active{name="(\w+)"}`).FindStringSubmatch(r.Expr)
		require.Equal(t, slices.Contains(own, r.Alert), raised != nil, r.Alert)
		if raised != nil {
			require.Equal(t, r.Alert, raised[1])
		}
	}
	require.ElementsMatch(t, append(own, "JournalHole", "ProjectorStale", "JournalFilling"), rules)
}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana/journald.json")
	require.NoError(t, err)
	type place struct{ X, Y, W, H int }
	var board struct {
		Title      string `json:"title"`
		UID        string `json:"uid"`
		Templating struct {
			List []struct {
				Name string `json:"name"`
			} `json:"list"`
		} `json:"templating"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Place   place  `json:"gridPos"`
			Targets []struct {
				Expr         string `json:"expr"`
				LegendFormat string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &board, json.MatchCaseInsensitiveNames(true)))
	require.NotEmpty(t, board.UID)
	require.Len(t, board.Templating.List, 2)
	known, taken := knownMetrics(t), map[[2]int]string{}
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			known.judge(t, target.Expr)
			for _, m := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Regexp(t, `by \([^)]*\b`+m[1]+`\b`, target.Expr, "the legend names a label that is summed over")
			}
		}
		for x := p.Place.X; x < p.Place.X+p.Place.W; x++ {
			for y := p.Place.Y; y < p.Place.Y+p.Place.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies over it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		require.LessOrEqual(t, p.Place.X+p.Place.W, 24, p.Title)
	}
}
